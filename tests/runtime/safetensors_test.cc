// Verifies that a safetensors file is read exactly as written, and that every way it can be wrong
// is an error at opening, with its kind and the file's name.
#include "runtime/safetensors.h"

#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "device/error.h"
#include "gtest/gtest.h"
#include "runtime/safetensors_header.h"
#include "tests/device/status_matchers.h"
#include "tests/runtime/folder.h"

namespace holdfast {
namespace {

// a: F32 (2, 2), bytes 0..15; b: BF16 (3), bytes 16..21; c: empty.
constexpr char kHeader[] = R"({"__metadata__":{"format":"pt"},)"
                           R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]},)"
                           R"("a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                           R"("c":{"dtype":"I64","shape":[0,5],"data_offsets":[22,22]}})";
constexpr char kData[] = "0123456789abcdefBF16ab";

TEST(SafetensorsTest, ReadsNamesShapesAndBytes) {
  Folder folder;
  ASSERT_OK_AND_ASSIGN(SafetensorsFile opened, SafetensorsFile::Open(folder.Write(
                                                   "x.safetensors", Safetensors(kHeader, kData))));
  const SafetensorsFile file = std::move(opened);  // and it survives a move
  ASSERT_EQ(file.tensors().size(), 3u);
  const TensorInfo& a = file.tensors().at("a");
  EXPECT_EQ(a.dtype, "F32");
  EXPECT_EQ(a.shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(a.bytes, 16u);
  EXPECT_EQ(file.tensors().at("c").bytes, 0u);

  std::string read(6, '?');
  ASSERT_OK(file.Read(file.tensors().at("b"), 0, 6, read.data()));
  EXPECT_EQ(read, "BF16ab");
  ASSERT_OK(file.Read(a, 10, 6, read.data()));
  EXPECT_EQ(read, "abcdef");
}

TEST(SafetensorsTest, AScalarHasOneElement) {
  Folder folder;
  EXPECT_OK(SafetensorsFile::Open(folder.Write(
      "x", Safetensors(R"({"s":{"dtype":"F64","shape":[],"data_offsets":[0,8]}})", "12345678"))));
}

TEST(SafetensorsTest, RefusesToReadBeyondATensor) {
  Folder folder;
  ASSERT_OK_AND_ASSIGN(const SafetensorsFile file,
                       SafetensorsFile::Open(folder.Write("x", Safetensors(kHeader, kData))));
  char out[32];
  const TensorInfo& a = file.tensors().at("a");
  EXPECT_THAT(file.Read(a, 0, 17, out), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(file.Read(a, 17, 0, out), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(file.Read(a, 8, ~std::uint64_t{0} - 4, out),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_OK(file.Read(a, 16, 0, out));
}

TEST(SafetensorsTest, NoticesThatAFileShrankSinceItWasOpened) {
  Folder folder;
  const std::string path = folder.Write("x", Safetensors(kHeader, kData));
  ASSERT_OK_AND_ASSIGN(const SafetensorsFile file, SafetensorsFile::Open(path));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  char out[8];
  EXPECT_THAT(file.Read(file.tensors().at("b"), 0, 6, out), IsErrorKind(ErrorKind::kCorrupted));
}

TEST(SafetensorsTest, RefusesWhatIsNoFile) {
  Folder folder;
  const auto missing = SafetensorsFile::Open(folder.path() + "/none");
  EXPECT_THAT(missing, IsErrorKind(ErrorKind::kNotFound));
  EXPECT_EQ(GetErrorInfo(missing.status())->object, folder.path() + "/none");
  EXPECT_THAT(SafetensorsFile::Open(folder.path()), IsErrorKind(ErrorKind::kInvalidArgument));
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(SafetensorsFile::Open(pipe), IsErrorKind(ErrorKind::kInvalidArgument));
}

// -- The bytes around the header
// ------------------------------------------------------------------------

struct BadFile {
  std::string name, contents, message;
};
class SafetensorsRefusesFile : public testing::TestWithParam<BadFile> {};

TEST_P(SafetensorsRefusesFile, NamesFileAndFault) {
  Folder folder;
  const std::string path = folder.Write("x.safetensors", GetParam().contents);
  const auto result = SafetensorsFile::Open(path);
  ASSERT_THAT(result, IsErrorKind(ErrorKind::kCorrupted));
  EXPECT_EQ(GetErrorInfo(result.status())->object, path);
  EXPECT_THAT(std::string(result.status().message()), testing::HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, SafetensorsRefusesFile,
    testing::Values(
        BadFile{"Empty", "", "too short"}, BadFile{"SevenBytes", std::string(7, '\0'), "too short"},
        BadFile{"OnlyZeros", std::string(64, '\0'), "header is no object"},
        BadFile{"WrongMagic", "PK\x03\x04" + std::string(60, 'z'), "no safetensors file"},
        BadFile{"ALargeGitPointer", "version https://git-lfs.github.com/spec/v1\n",
                "no safetensors file"},
        BadFile{"HeaderIsAList", Safetensors("[]", ""), "header is no object"},
        BadFile{"HeaderLongerThanFile", Safetensors(kHeader, kData, 4096),
                "header longer than the file"},
        BadFile{"HeaderLongerByOne", Safetensors("{}", "", 3), "header longer than the file"},
        BadFile{"LengthNearWrap", Safetensors("{}", "", ~std::uint64_t{0} - 7),
                "longer than any may be"},
        BadFile{"LengthOverLimit", Safetensors("{}", "", 100'000'001), "longer than any may be"},
        BadFile{"HeaderCutShort", Safetensors(kHeader, kData, sizeof(kHeader) - 2),
                "not valid JSON"},
        BadFile{"HeaderTakesInData", Safetensors(kHeader, kData, sizeof(kHeader) + 3),
                "not valid JSON"},
        BadFile{"DataAfterTheLastTensor", Safetensors(kHeader, std::string(kData) + "!"),
                "after its last"},
        BadFile{"DataWithoutTensors", Safetensors("{}", "!"), "after its last"}),
    [](const auto& info) { return info.param.name; });

// -- What the header says
// -------------------------------------------------------------------------------

struct BadHeader {
  std::string name, from, to;  // in kHeader
  std::string message;
  ErrorKind kind = ErrorKind::kCorrupted;
};
class SafetensorsRefusesHeader : public testing::TestWithParam<BadHeader> {};

TEST_P(SafetensorsRefusesHeader, NamesFileAndFault) {
  const std::string header = absl::StrReplaceAll(kHeader, {{GetParam().from, GetParam().to}});
  ASSERT_NE(header, kHeader);
  Folder folder;
  const std::string path = folder.Write("x.safetensors", Safetensors(header, kData));
  const auto result = SafetensorsFile::Open(path);
  ASSERT_THAT(result, IsErrorKind(GetParam().kind));
  EXPECT_EQ(GetErrorInfo(result.status())->object, path);
  EXPECT_THAT(std::string(result.status().message()), testing::HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, SafetensorsRefusesHeader,
    testing::Values(
        BadHeader{"UnknownDtype", "\"F32\"", "\"F33\"", "unknown dtype \"F33\"",
                  ErrorKind::kUnsupported},
        BadHeader{"DtypeOfAnotherSize", "\"F32\"", "\"F64\"", "its shape and dtype ask for 32"},
        BadHeader{"DtypeNumber", "\"F32\"", "32", "has no dtype"},
        BadHeader{"NoDtype", "\"dtype\":\"F32\",", "", "has no dtype"},
        BadHeader{"NoShape", "\"shape\":[2,2],", "", "has no shape"},
        BadHeader{"ShapeTooBig", "[2,2]", "[2,3]", "ask for 24"},
        BadHeader{"ShapeTooSmall", "[2,2]", "[3]", "ask for 12"},
        BadHeader{"NegativeExtent", "[2,2]", "[-2,-2]", "no 63-bit count"},
        BadHeader{"FractionalExtent", "[2,2]", "[2.0,2]", "no 63-bit count"},
        BadHeader{"ExtentBeyond63Bits", "[2,2]", "[9223372036854775808]", "no 63-bit count"},
        BadHeader{"ExtentBeyond64Bits", "[2,2]", "[18446744073709551617]", "no 63-bit count"},
        // 2^32 * 2^32 * 4 bytes wraps to 0, and 2^62 * 4 + 4 to 4.
        BadHeader{"ProductWraps", "[2,2]", "[4294967296,4294967296]", "product overflows"},
        BadHeader{"BytesWrap", "[2,2]", "[4611686018427387908]", "more bytes than fit"},
        BadHeader{"ZeroHidesOverflow", "[0,5]", "[0,4294967296,4294967296]", "product overflows"},
        BadHeader{"ZeroWithData", "[3]", "[0]", "ask for 0"},
        BadHeader{"OneOffset", "[0,16]", "[16]", "no two data offsets"},
        BadHeader{"ThreeOffsets", "[0,16]", "[0,8,16]", "no two data offsets"},
        BadHeader{"NegativeOffset", "[0,16]", "[-16,0]", "no two data offsets"},
        BadHeader{"EndBeforeBegin", "[0,16]", "[16,0]", "before it begins"},
        BadHeader{"EndBeyondFile", "[16,22]", "[16,23]", "truncated"},
        BadHeader{"FarBeyondFile", "[16,22]", "[18446744073709551610,18446744073709551615]",
                  "truncated"},
        BadHeader{"Overlap", "[16,22]", "[15,21]", "\"b\" overlaps \"a\""},
        BadHeader{"SameBytes", "\"BF16\",\"shape\":[3],\"data_offsets\":[16,22]",
                  "\"F32\",\"shape\":[4],\"data_offsets\":[0,16]", "overlaps"},
        BadHeader{"EmptyInsideAnother", "[22,22]", "[7,7]", "overlaps"},
        BadHeader{"Gap", "\"BF16\",\"shape\":[3],\"data_offsets\":[16,22]",
                  "\"BF16\",\"shape\":[2],\"data_offsets\":[18,22]", "bytes of no tensor"},
        BadHeader{"DuplicateName", "\"b\":", "\"a\":", "repeats the key \"a\""},
        BadHeader{"DuplicateField", "\"dtype\":\"F32\"", "\"dtype\":\"F32\",\"dtype\":\"F32\"",
                  "repeats"},
        BadHeader{"TensorIsAString", "{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}",
                  "\"a\"", "not described by an object"},
        BadHeader{"MetadataNumber", "\"pt\"", "1", "__metadata__"},
        BadHeader{"MetadataList", "{\"format\":\"pt\"}", "[]", "__metadata__"},
        BadHeader{"TooDeep", "[0,16]", "[[[[[0]]]],16]", "deeper than"}),
    [](const auto& info) { return info.param.name; });

// Every truncation is an error; every flipped bit of length and header is an error or a file whose
// tensors all lie within it.
TEST(SafetensorsTest, SurvivesEveryTruncation) {
  Folder folder;
  const std::string whole = Safetensors(kHeader, kData);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto result = SafetensorsFile::Open(folder.Write("x", whole.substr(0, length)));
    EXPECT_THAT(result, IsErrorKind(ErrorKind::kCorrupted)) << length;
  }
}

TEST(SafetensorsTest, SurvivesEveryFlippedBitOfTheLength) {
  Folder folder;
  for (std::size_t bit = 0; bit < 64; ++bit) {
    std::string flipped = Safetensors(kHeader, kData);
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_THAT(SafetensorsFile::Open(folder.Write("x", flipped)),
                IsErrorKind(ErrorKind::kCorrupted))
        << bit;
  }
}

TEST(SafetensorsTest, SurvivesEveryFlippedBitOfTheHeader) {
  constexpr std::uint64_t kStart = 1000, kBytes = sizeof(kData) - 1;
  int refused = 0;
  for (std::size_t bit = 0; bit < (sizeof(kHeader) - 1) * 8; ++bit) {
    std::string flipped = kHeader;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const auto result = ParseSafetensorsHeader(flipped, "x", kStart, kBytes);
    if (!result.ok()) {
      ++refused;
      EXPECT_TRUE(GetErrorInfo(result.status()).has_value()) << bit;
      continue;
    }
    for (const auto& [name, tensor] : *result) {
      EXPECT_GE(tensor.offset, kStart) << bit;
      EXPECT_LE(tensor.offset + tensor.bytes, kStart + kBytes) << bit;
    }
  }
  // What may stay: letters of names, and shapes of the empty tensor.
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace holdfast
