// A repeatable executor: phase 1 once, phase 2 many times, each time on other memory.
#include "aclnnop/aclnn_logsigmoid_backward.h"
#include "common.h"

int main() {
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));
  {
    const std::vector<int64_t> shape = {4};
    DeviceBuffer<float> grads({1.0f, 1.0f, 1.0f, 1.0f}), zeros({0.0f, 0.0f, 0.0f, 0.0f});
    DeviceBuffer<float> first({0.0f, 0.0f, 0.0f, 0.0f}), second({0.0f, 0.0f, 0.0f, 0.0f});
    aclTensor *grad = FloatTensor(shape, grads.get()), *self = FloatTensor(shape, zeros.get());
    aclTensor *buffer = FloatTensor({0}, nullptr);  // must be there, is never read
    aclTensor *out = FloatTensor(shape, first.get());

    uint64_t size = 0;
    aclOpExecutor *executor = nullptr;
    CHECK(aclnnLogSigmoidBackwardGetWorkspaceSize(grad, self, buffer, out, &size, &executor));
    CHECK(aclSetAclOpExecutorRepeatable(executor));
    Workspace workspace(size);
    CHECK(aclnnLogSigmoidBackward(workspace.get(), size, executor, stream));
    CHECK(aclSetOutputTensorAddr(executor, 0, out, second.get()));
    CHECK(aclSetInputTensorAddr(executor, 0, grad, first.get()));  // the first result is the second gradient
    CHECK(aclnnLogSigmoidBackward(workspace.get(), size, executor, stream));
    CHECK(aclrtSynchronizeStream(stream));
    CHECK(aclDestroyAclOpExecutor(executor));

    // The derivative of log(sigmoid(x)) at 0 is one half.
    for (float value : first.Read()) EXPECT(value == 0.5f);
    for (float value : second.Read()) EXPECT(value == 0.25f);
    for (aclTensor *tensor : {grad, self, buffer, out}) CHECK(aclDestroyTensor(tensor));
  }
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  std::puts("repeatable executor: right");
  return 0;
}
