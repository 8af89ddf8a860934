#include "device/file_descriptor.h"

#include <unistd.h>

namespace holdfast {

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace holdfast
