// A device address as a value: no arithmetic by accident, no dereference on the host.
#ifndef HOLDFAST_DEVICE_ADDRESS_H_
#define HOLDFAST_DEVICE_ADDRESS_H_

#include <compare>
#include <cstdint>

namespace holdfast {

struct DeviceAddress {
  std::uint64_t value = 0;

  auto operator<=>(const DeviceAddress&) const = default;
  DeviceAddress operator+(std::uint64_t bytes) const { return {value + bytes}; }
  std::uint64_t operator-(DeviceAddress other) const { return value - other.value; }
  explicit operator bool() const { return value != 0; }

  // The pointer to put into kernel parameters. Only device code may follow it.
  template <typename T>
  T* As() const {
    return reinterpret_cast<T*>(value);
  }
};

// [base, base + bytes)
struct AddressRange {
  DeviceAddress base;
  std::uint64_t bytes = 0;

  bool operator==(const AddressRange&) const = default;
  DeviceAddress end() const { return base + bytes; }
  bool Contains(DeviceAddress a) const { return a >= base && a < end(); }
  // One past the end counts: kernels are given begin/end pairs.
  bool ContainsOrEnds(DeviceAddress a) const { return a >= base && a <= end(); }
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_ADDRESS_H_
