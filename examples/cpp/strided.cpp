// Strided tensors: a transposed input, a broadcast input (stride 0) and an output that is every second column of its storage.
#include "aclnnop/aclnn_softmax_backward.h"
#include "common.h"

int main() {
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));
  {
    // y is stored as 3 rows of 2 and read as its transpose, 2 rows of 3.
    const std::vector<int64_t> view = {2, 3}, transposed_storage = {3, 2}, transposed = {1, 2};
    DeviceBuffer<float> y({0.5f, 0.25f, 0.25f, 0.25f, 0.25f, 0.5f});
    aclTensor *output = aclCreateTensor(view.data(), 2, ACL_FLOAT, transposed.data(), 0, ACL_FORMAT_ND,
                                        transposed_storage.data(), 2, y.get());
    // One row of gradients for both rows: its stride is 0.
    const std::vector<int64_t> row = {3}, broadcast = {0, 1};
    DeviceBuffer<float> g({1.0f, 2.0f, 4.0f});
    aclTensor *grad = aclCreateTensor(view.data(), 2, ACL_FLOAT, broadcast.data(), 0, ACL_FORMAT_ND, row.data(), 1, g.get());
    // The result goes to columns 0, 2, 4 of a 2 by 6 storage.
    const std::vector<int64_t> wide = {2, 6}, every_second = {6, 2};
    DeviceBuffer<float> result(std::vector<float>(12, -1.0f));
    aclTensor *out = aclCreateTensor(view.data(), 2, ACL_FLOAT, every_second.data(), 0, ACL_FORMAT_ND, wide.data(), 2, result.get());

    uint64_t size = 0;
    aclOpExecutor *executor = nullptr;
    CHECK(aclnnSoftmaxBackwardGetWorkspaceSize(grad, output, 1, out, &size, &executor));
    EXPECT(size > 0);  // dense copies of the strided tensors live in the workspace
    Workspace workspace(size);
    CHECK(aclnnSoftmaxBackward(workspace.get(), workspace.size(), executor, stream));
    CHECK(aclrtSynchronizeStream(stream));

    // y * (g - sum(y * g)): row 0 has y = (0.5, 0.25, 0.25), sum 2; row 1 has y = (0.25, 0.25, 0.5), sum 2.75.
    const std::vector<float> expected = {-0.5f, 0.0f, 0.5f, -0.4375f, -0.1875f, 0.625f};
    const std::vector<float> got = result.Read();
    for (size_t i = 0; i < got.size(); i++) {
      EXPECT(got[i] == (i % 2 == 0 ? expected[i / 2] : -1.0f));  // what the view does not cover stays as it was
    }
    int64_t *strides = nullptr;
    uint64_t rank = 0;
    CHECK(aclGetViewStrides(out, &strides, &rank));
    EXPECT(rank == 2 && strides[0] == 6 && strides[1] == 2);
    delete[] strides;
    CHECK(aclDestroyTensor(grad));
    CHECK(aclDestroyTensor(output));
    CHECK(aclDestroyTensor(out));
  }
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  std::puts("strided tensors: right");
  return 0;
}
