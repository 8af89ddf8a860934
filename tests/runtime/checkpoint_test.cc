// Verifies that a checkpoint folder is found in its one-file and its sharded form, and that an
// index that lies or leads elsewhere is refused.
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "device/error.h"
#include "gtest/gtest.h"
#include "runtime/safetensors.h"
#include "tests/device/status_matchers.h"
#include "tests/runtime/folder.h"

namespace holdfast {
namespace {

// One U8 tensor with the given bytes.
std::string OneTensor(const std::string& name, const std::string& bytes) {
  return Safetensors(absl::StrCat(R"({")", name, R"(":{"dtype":"U8","shape":[)", bytes.size(),
                                  R"(],"data_offsets":[0,)", bytes.size(), "]}}"),
                     bytes);
}

constexpr char kIndex[] = "model.safetensors.index.json";

// Shards "1.safetensors" with x = "XX" and "2.safetensors" with y = "YYY", without an index.
void WriteShards(const Folder& folder) {
  folder.Write("1.safetensors", OneTensor("x", "XX"));
  folder.Write("2.safetensors", OneTensor("y", "YYY"));
}

TEST(CheckpointTest, ReadsOneFile) {
  Folder folder;
  folder.Write("model.safetensors", OneTensor("x", "abc"));
  ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint, Checkpoint::Open(folder.path()));
  ASSERT_NE(checkpoint.Find("x"), nullptr);
  EXPECT_EQ(checkpoint.Find("z"), nullptr);
  EXPECT_EQ(checkpoint.total_bytes(), 3u);
  std::string out(2, '?');
  ASSERT_OK(checkpoint.Read("x", 1, 2, out.data()));
  EXPECT_EQ(out, "bc");
  const absl::Status missing = checkpoint.Read("z", 0, 1, out.data());
  EXPECT_THAT(missing, IsErrorKind(ErrorKind::kNotFound));
  EXPECT_EQ(GetErrorInfo(missing)->object, "z");
}

TEST(CheckpointTest, ReadsShards) {
  Folder folder;
  WriteShards(folder);
  folder.Write(
      kIndex,
      R"({"metadata":{"total_size":5},"weight_map":{"x":"1.safetensors","y":"2.safetensors"}})");
  ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint, Checkpoint::Open(folder.path()));
  EXPECT_THAT(checkpoint.names(), testing::ElementsAre("x", "y"));
  EXPECT_EQ(checkpoint.total_bytes(), 5u);
  std::string out(3, '?');
  ASSERT_OK(checkpoint.Read("y", 0, 3, out.data()));
  EXPECT_EQ(out, "YYY");
}

TEST(CheckpointTest, NamesWhatIsMissing) {
  Folder folder;
  const auto nothing = Checkpoint::Open(folder.path());
  EXPECT_THAT(nothing, IsErrorKind(ErrorKind::kNotFound));
  EXPECT_EQ(GetErrorInfo(nothing.status())->object, folder.path() + "/model.safetensors");
  folder.Write(kIndex, R"({"weight_map":{"x":"1.safetensors"}})");
  const auto no_shard = Checkpoint::Open(folder.path());
  EXPECT_THAT(no_shard, IsErrorKind(ErrorKind::kNotFound));
  EXPECT_EQ(GetErrorInfo(no_shard.status())->object, folder.path() + "/1.safetensors");
}

TEST(CheckpointTest, RefusesATensorThatTwoShardsHold) {
  Folder folder;
  WriteShards(folder);
  folder.Write("2.safetensors",
               Safetensors(R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                           R"("y":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                           "xy"));
  folder.Write(kIndex, R"({"weight_map":{"x":"1.safetensors","y":"2.safetensors"}})");
  const auto result = Checkpoint::Open(folder.path());
  EXPECT_THAT(result, IsErrorKind(ErrorKind::kCorrupted));
  EXPECT_THAT(std::string(result.status().message()), testing::HasSubstr("\"x\" both in"));
}

struct BadIndex {
  std::string name, text, message;
};
class CheckpointRefusesIndex : public testing::TestWithParam<BadIndex> {};

TEST_P(CheckpointRefusesIndex, NamesIndexAndFault) {
  Folder folder;
  WriteShards(folder);
  std::filesystem::create_directory(folder.path() + "/inner");
  folder.Write("inner/3.safetensors", OneTensor("z", "Z"));
  const std::string path = folder.Write(kIndex, GetParam().text);
  const auto result = Checkpoint::Open(folder.path());
  ASSERT_THAT(result, IsErrorKind(ErrorKind::kCorrupted));
  EXPECT_EQ(GetErrorInfo(result.status())->object, path);
  EXPECT_THAT(std::string(result.status().message()), testing::HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, CheckpointRefusesIndex,
    testing::Values(
        BadIndex{"NotJson", "weights", "not valid JSON"}, BadIndex{"List", "[]", "no weight_map"},
        BadIndex{"NoMap", "{}", "no weight_map"},
        BadIndex{"EmptyMap", R"({"weight_map":{}})", "no weight_map"},
        BadIndex{"MapIsList", R"({"weight_map":["x"]})", "no weight_map"},
        BadIndex{"NumberForFile", R"({"weight_map":{"x":1}})", "names no .safetensors file"},
        BadIndex{"EmptyFile", R"({"weight_map":{"x":""}})", "names no .safetensors file"},
        BadIndex{"ParentFolder", R"({"weight_map":{"x":"../1.safetensors"}})",
                 "names no .safetensors file"},
        BadIndex{"InnerFolder", R"({"weight_map":{"z":"inner/3.safetensors"}})",
                 "names no .safetensors file"},
        BadIndex{"Root", R"({"weight_map":{"x":"/etc/1.safetensors"}})",
                 "names no .safetensors file"},
        BadIndex{"ZeroByte", R"({"weight_map":{"x":"1\u0000.safetensors"}})",
                 "names no .safetensors file"},
        BadIndex{"OtherKind", R"({"weight_map":{"x":"1.bin"}})", "names no .safetensors file"},
        BadIndex{"RepeatedTensor", R"({"weight_map":{"x":"1.safetensors","x":"2.safetensors"}})",
                 "repeats"},
        BadIndex{"UnknownTensor", R"({"weight_map":{"x":"1.safetensors","w":"1.safetensors"}})",
                 "\"w\" is in"},
        BadIndex{"WrongShard", R"({"weight_map":{"x":"2.safetensors","y":"1.safetensors"}})",
                 "\"x\" is in"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace holdfast
