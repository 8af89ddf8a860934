// A span of somebody else's arena, mapped here.
#ifndef HOLDFAST_ALLOCATOR_IMPORTED_SPAN_H_
#define HOLDFAST_ALLOCATOR_IMPORTED_SPAN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/device.h"

namespace holdfast {

// What has to reach the importer, besides the files themselves.
struct ImportPiece {
  const FileDescriptor* file = nullptr;  // needed during the call only
  std::uint64_t bytes = 0;               // of the whole piece
};

struct ImportSpec {
  std::string name;
  std::uint64_t bytes = 0;   // of the span
  std::uint64_t offset = 0;  // of the span in the first piece
  std::vector<ImportPiece> pieces;
  Access access = Access::kRead;
};

// Holds the pages while it lives: the exporter's sleep frees nothing before it is gone.
class ImportedSpan {
 public:
  // Reserves just the pieces' bytes, at an address of the device's choice. kInvalidArgument: no
  // pieces, a span beyond them, a file that is no piece. On failure nothing stays. The device must
  // outlive it.
  static absl::StatusOr<std::unique_ptr<ImportedSpan>> Open(Device& device, const ImportSpec& spec);
  // Unmaps. Work that uses it must be done.
  ~ImportedSpan();
  ImportedSpan(const ImportedSpan&) = delete;
  ImportedSpan& operator=(const ImportedSpan&) = delete;

  const std::string& name() const { return name_; }
  AddressRange range() const { return range_; }        // the span
  AddressRange reserved() const { return reserved_; }  // all pieces

 private:
  struct Piece {
    AddressRange range;
    ChunkHandle chunk;
    bool mapped = false;
  };
  ImportedSpan(Device& device, std::string name) : device_(device), name_(std::move(name)) {}
  absl::Status MapPieces(const ImportSpec& spec);

  Device& device_;
  std::string name_;
  AddressRange range_, reserved_;
  std::vector<Piece> pieces_;
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_IMPORTED_SPAN_H_
