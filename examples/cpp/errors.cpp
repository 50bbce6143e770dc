// Error handling: what is refused, with which code, and what aclGetRecentErrMsg says then.
#include <cstring>

#include "aclnnop/aclnn_selu_backward.h"
#include "common.h"

int main() {
  CHECK(aclInit(nullptr));
  EXPECT(aclInit(nullptr) == ACL_ERROR_REPEAT_INITIALIZE);  // to be ignored: someone else was first
  EXPECT(aclGetRecentErrMsg() != nullptr);

  void *data = nullptr;
  EXPECT(aclrtMalloc(&data, 64, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_ERROR_RT_CONTEXT_NULL);  // no aclrtSetDevice yet
  EXPECT(data == nullptr);
  std::printf("%s\n", aclGetRecentErrMsg());
  EXPECT(aclGetRecentErrMsg() == nullptr);  // each message is given once
  EXPECT(aclrtSetDevice(99) == ACL_ERROR_RT_INVALID_DEVICEID);

  CHECK(aclrtSetDevice(0));
  EXPECT(aclrtMalloc(nullptr, 64, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_ERROR_INVALID_PARAM);
  EXPECT(aclrtMalloc(&data, 0, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtMalloc(&data, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  float host[16] = {};
  EXPECT(aclrtMemcpy(data, 32, host, 64, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_ERROR_RT_PARAM_INVALID);  // more than fits

  aclTensor *floats = FloatTensor({16}, data);
  const int64_t shape[] = {16};
  aclTensor *halves = aclCreateTensor(shape, 1, ACL_FLOAT16, nullptr, 0, ACL_FORMAT_ND, shape, 1, data);
  uint64_t size = 123;
  aclOpExecutor *executor = nullptr;
  EXPECT(aclnnSeluBackwardGetWorkspaceSize(floats, nullptr, floats, &size, &executor) == ACLNN_ERR_PARAM_NULLPTR);
  aclGetRecentErrMsg();
  EXPECT(aclnnSeluBackwardGetWorkspaceSize(floats, halves, floats, &size, &executor) == ACLNN_ERR_PARAM_INVALID);
  const char *text = aclGetRecentErrMsg();
  EXPECT(text != nullptr && std::strstr(text, "EZ1001") != nullptr && std::strstr(text, "DT_FLOAT16") != nullptr);
  std::printf("%s\n", text);
  EXPECT(size == 123 && executor == nullptr);  // a refused phase 1 touches nothing

  CHECK(aclnnSeluBackwardGetWorkspaceSize(floats, floats, floats, &size, &executor));
  Workspace *workspace = new Workspace(size);
  CHECK(aclnnSeluBackward(workspace->get(), size, executor, nullptr));
  EXPECT(aclnnSeluBackward(workspace->get(), size, executor, nullptr) == ACLNN_ERR_INNER);  // the executor is spent
  CHECK(aclrtSynchronizeStream(nullptr));                                                   // the default stream

  // A host pointer given as a device tensor: phase 2 is submitted, the fault comes out at the synchronisation.
  aclTensor *wrong = FloatTensor({16}, host);
  CHECK(aclnnSeluBackwardGetWorkspaceSize(floats, wrong, floats, &size, &executor));
  CHECK(aclnnSeluBackward(workspace->get(), size, executor, nullptr));
  EXPECT(aclrtSynchronizeStream(nullptr) != 0);
  std::printf("%s\n", aclGetRecentErrMsg());

  delete workspace;
  CHECK(aclDestroyTensor(floats));
  CHECK(aclDestroyTensor(halves));
  CHECK(aclDestroyTensor(wrong));
  CHECK(aclrtFree(data));
  EXPECT(aclrtFree(data) == ACL_ERROR_RT_PARAM_INVALID);  // freed already
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  EXPECT(aclFinalize() == ACL_ERROR_REPEAT_FINALIZE);
  std::puts("error handling: right");
  return 0;
}
