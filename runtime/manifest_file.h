// Reads a graph manifest back from a file nobody vouches for.
#ifndef HOLDFAST_RUNTIME_MANIFEST_FILE_H_
#define HOLDFAST_RUNTIME_MANIFEST_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "graphs/manifest.h"

namespace holdfast {

// What ManifestJson wrote. kNotFound, or kCorrupted naming `document` and the field: not JSON, not
// a manifest, of a version this build does not read, a field missing or of the wrong type, an index
// that leads nowhere.
absl::StatusOr<Manifest> ParseManifest(const std::string& text, const std::string& document);
absl::StatusOr<Manifest> ReadManifest(const std::string& path);

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_MANIFEST_FILE_H_
