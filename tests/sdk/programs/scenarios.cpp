// One scenario a run, named by the first argument. Exit code 0 and the scenario's line on stdout when everything was right.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "aclnnop/aclnn_selu_backward.h"
#include "aclnnop/aclnn_softmax_backward.h"
#include "common.h"

namespace {

const float kScale = 1.0507009873554804934f;

void Start() {
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
}

void Selu(const aclTensor *grad, const aclTensor *result, aclTensor *out, aclrtStream stream) {
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  CHECK(aclnnSeluBackwardGetWorkspaceSize(grad, result, out, &size, &executor));
  CHECK(aclnnSeluBackward(nullptr, size, executor, stream));
}

// A thread of its own stream and memory, `calls` two-phase calls, values checked after every 50.
void Work(int number, int calls) {
  CHECK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));
  {
    DeviceBuffer<float> grads(std::vector<float>(64, 0.0f)), ones(std::vector<float>(64, 1.0f)), outs(std::vector<float>(64, 0.0f));
    aclTensor *grad = FloatTensor({64}, grads.get()), *result = FloatTensor({64}, ones.get()), *out = FloatTensor({8, 8}, outs.get());
    aclTensor *flat = FloatTensor({64}, outs.get());
    for (int i = 0; i < calls; i++) {
      const float value = static_cast<float>(1 + number * 1000 + i);
      const std::vector<float> host(64, value);
      CHECK(aclrtMemcpyAsync(grads.get(), 256, host.data(), 256, ACL_MEMCPY_HOST_TO_DEVICE, stream));
      Selu(grad, result, flat, stream);
      if (i % 50 == 49) {
        CHECK(aclrtSynchronizeStream(stream));
        for (float got : outs.Read()) EXPECT(got == value * kScale);
      }
      uint64_t size = 0;
      aclOpExecutor *executor = nullptr;
      if (i % 100 == 0)  // each thread keeps its own messages
        EXPECT(aclnnSeluBackwardGetWorkspaceSize(grad, result, out, &size, &executor) == ACLNN_ERR_PARAM_INVALID);
    }
    const char *text = aclGetRecentErrMsg();
    EXPECT(text != nullptr && std::strstr(text, "[8,8]") != nullptr);
    EXPECT(aclGetRecentErrMsg() == nullptr);
    for (aclTensor *tensor : {grad, result, out, flat}) CHECK(aclDestroyTensor(tensor));
  }
  CHECK(aclrtDestroyStream(stream));
}

void Threads(int threads, int calls) {
  std::vector<std::thread> all;
  for (int i = 0; i < threads; i++) all.emplace_back(Work, i, calls);
  for (auto &thread : all) thread.join();
}

// Nobody has called anything when all of them call at once.
void First() {
  std::atomic<int> waiting{0}, good{0};
  std::vector<std::thread> all;
  for (int i = 0; i < 8; i++)
    all.emplace_back([&, i] {
      for (waiting++; waiting < 8;) std::this_thread::yield();
      const char *name = i % 2 != 0 ? aclrtGetSocName() : nullptr;
      uint32_t count = 0;
      if (i % 2 != 0 ? name != nullptr && std::strlen(name) > 0 : aclrtGetDeviceCount(&count) == 0 && count > 0) good++;
    });
  for (auto &thread : all) thread.join();
  EXPECT(good == 8);
  Threads(2, 100);
}

void Fork() {
  Start();
  Work(0, 100);
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    int32_t device = -1;
    bool refused = aclrtGetDevice(&device) != 0 && aclrtSetDevice(0) != 0 && aclInit(nullptr) != 0;
    refused = refused && aclnnInit(nullptr) != 0 && aclCreateTensor(nullptr, 0, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr) == nullptr;
    const char *text = aclGetRecentErrMsg();
    std::exit(refused && text != nullptr && std::strstr(text, "fork") != nullptr ? 0 : 1);
  }
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  Work(1, 100);
}

// Forked before the first call: the child has an emulator of its own.
void ForkFirst() {
  pid_t child = fork();
  if (child == 0) {
    Start();
    Work(0, 50);
    std::exit(0);
  }
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  Start();
  Work(1, 50);
}

void Sigint(bool own_handler) {
  static std::atomic<int> seen{0};
  if (own_handler) signal(SIGINT, [](int) { seen++; });
  Start();
  if (own_handler) {
    raise(SIGINT);
    EXPECT(seen == 1);
    return;
  }
  Work(0, 10);
  std::puts("ready");
  std::fflush(stdout);
  kill(getpid(), SIGINT);  // ends the program: nothing has taken the signal over
  for (;;) pause();
}

// Leaves with work queued on two streams and with a host function that runs.
void Busy() {
  Start();
  static std::atomic<bool> begun{false};
  aclrtStream streams[2];
  const int64_t count = 1 << 22;
  DeviceBuffer<float> *data = new DeviceBuffer<float>(std::vector<float>(static_cast<size_t>(count), 1.0f));
  aclTensor *tensor = FloatTensor({count}, data->get());
  for (auto &stream : streams) {
    CHECK(aclrtCreateStream(&stream));
    for (int i = 0; i < 200; i++) Selu(tensor, tensor, tensor, stream);
  }
  aclrtStream third = nullptr;
  CHECK(aclrtCreateStream(&third));
  CHECK(aclrtLaunchHostFunc(third, [](void *) { begun = true; for (;;) pause(); }, nullptr));
  while (!begun) {
    aclrtStreamStatus status;
    CHECK(aclrtStreamQuery(third, &status));
    std::this_thread::yield();
  }
}

// What aclGetRecentErrMsg gave lives until this thread's next call of it, whatever other threads do.
void Messages() {
  Start();
  EXPECT(aclGetRecentErrMsg() == nullptr);
  EXPECT(aclrtSetDevice(77) == ACL_ERROR_RT_INVALID_DEVICEID);
  const char *mine = aclGetRecentErrMsg();
  EXPECT(mine != nullptr);
  const std::string copy = mine;
  std::thread([] {
    EXPECT(aclGetRecentErrMsg() == nullptr);  // not this thread's
    EXPECT(aclrtSetDevice(78) != 0);
    EXPECT(std::strstr(aclGetRecentErrMsg(), "78") != nullptr);
  }).join();
  for (int i = 0; i < 100; i++) EXPECT(aclrtSetDevice(79) != 0);
  EXPECT(copy == mine);
  EXPECT(std::strstr(aclGetRecentErrMsg(), "79") != nullptr);
  EXPECT(aclGetRecentErrMsg() == nullptr);
}

void NotEmulated() {
  Start();
  EXPECT(aclrtMemPoolTrimTo(nullptr, 0) == ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT(std::strstr(aclGetRecentErrMsg(), "aclrtMemPoolTrimTo") != nullptr);
  EXPECT(aclDumpOpTensors("a", "b", nullptr, 0, 0, nullptr) == ACL_ERROR_API_NOT_SUPPORT);
  EXPECT(std::strstr(aclGetRecentErrMsg(), "aclDumpOpTensors") != nullptr);
  EXPECT(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, nullptr) == ACL_ERROR_API_NOT_SUPPORT);
}

// What has no interpreter behind it, and what C alone has.
void Values() {
  EXPECT(aclDataTypeSize(ACL_FLOAT) == 4 && aclDataTypeSize(ACL_COMPLEX128) == 16 && aclDataTypeSize(ACL_DT_UNDEFINED) == 0);
  for (uint32_t bits = 0; bits < 0x7c00u; bits++) {
    aclFloat16 half = static_cast<aclFloat16>(bits);
    EXPECT(aclFloatToFloat16(aclFloat16ToFloat(half)) == half);
    EXPECT(aclFloat16ToFloat(static_cast<aclFloat16>(half | 0x8000u)) == -aclFloat16ToFloat(half));
  }
  EXPECT(aclFloat16ToFloat(0x3c00) == 1.0f && aclFloat16ToFloat(0x0001) == 0x1p-24f);
  EXPECT(aclFloat16ToFloat(0x7c00) == 65536.0f && aclFloat16ToFloat(0x7e00) == 98304.0f);
  const float infinity = 1e38f * 10.0f;
  EXPECT(aclFloatToFloat16(infinity) == 0x7bff && aclFloatToFloat16(-infinity) == 0xfbff && aclFloatToFloat16(infinity - infinity) % 0x8000 == 0x7bff);
  EXPECT(aclFloatToFloat16(1.0f + 0x1p-11f) == 0x3c00 && aclFloatToFloat16(1.0f + 0x3p-11f) == 0x3c02);  // ties to even
  EXPECT(aclFloatToFloat16(0x1p-25f) == 0 && aclFloatToFloat16(0x1.8p-25f) == 1 && aclFloatToFloat16(65519.0f) == 0x7bff);
  Start();
  int32_t major = -1, minor = -1, patch = -1;
  CHECK(aclrtGetVersion(&major, &minor, &patch));
  EXPECT(major == 1);
  EXPECT(aclrtGetVersion(&major, nullptr, &patch) == ACL_ERROR_INVALID_PARAM);
  char version[128] = "";
  char package[] = "CANN";
  CHECK(aclsysGetVersionStr(package, version));
  EXPECT(std::strlen(version) > 0);
  const int64_t dims[] = {2, 3}, strides[] = {1, 2}, storage[] = {7};
  aclTensor *tensor = aclCreateTensor(dims, 2, ACL_FLOAT, strides, 1, ACL_FORMAT_NCHW, storage, 1, nullptr);
  int64_t *numbers = nullptr;
  uint64_t count = 0;
  CHECK(aclGetViewShape(tensor, &numbers, &count));
  EXPECT(count == 2 && numbers[0] == 2 && numbers[1] == 3);
  delete[] numbers;
  CHECK(aclGetStorageShape(tensor, &numbers, &count));
  EXPECT(count == 1 && numbers[0] == 7);
  delete[] numbers;
  EXPECT(aclGetViewShape(tensor, nullptr, &count) == ACLNN_ERR_PARAM_NULLPTR);
  EXPECT(aclGetViewShape(nullptr, &numbers, &count) == ACLNN_ERR_PARAM_NULLPTR);
  int64_t offset = 0;
  aclFormat format = ACL_FORMAT_ND;
  aclDataType type = ACL_INT8;
  CHECK(aclGetViewOffset(tensor, &offset));
  CHECK(aclGetFormat(tensor, &format));
  CHECK(aclGetDataType(tensor, &type));
  EXPECT(offset == 1 && format == ACL_FORMAT_NCHW && type == ACL_FLOAT);
  aclTensor *other = aclCreateTensor(dims, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 2, nullptr);
  aclOpExecutor *executor = nullptr;
  EXPECT(aclnnSeluBackwardGetWorkspaceSize(other, other, other, nullptr, &executor) == ACLNN_ERR_PARAM_NULLPTR && executor == nullptr);
  EXPECT(aclnnSeluBackwardGetWorkspaceSize(other, other, other, &count, nullptr) == ACLNN_ERR_PARAM_NULLPTR && count == 1);
  EXPECT(std::strstr(aclGetRecentErrMsg(), "workspaceSize and executor must not be null") != nullptr);
  const aclTensor *both[] = {tensor, other};
  aclTensorList *list = aclCreateTensorList(both, 2);
  CHECK(aclGetTensorListSize(list, &count));
  EXPECT(count == 2);
  CHECK(aclDestroyTensorList(list));  // and the two tensors
  EXPECT(aclGetDataType(tensor, &type) != 0);
  double pi = 3.25;
  aclScalar *scalar = aclCreateScalar(&pi, ACL_DOUBLE);
  EXPECT(scalar != nullptr && aclCreateScalar(nullptr, ACL_DOUBLE) == nullptr && aclCreateScalar(&pi, ACL_STRING) == nullptr);
  CHECK(aclDestroyScalar(scalar));
  const bool flags[] = {true, false, true};
  aclBoolArray *bools = aclCreateBoolArray(flags, 3);
  CHECK(aclGetBoolArraySize(bools, &count));
  EXPECT(count == 3);
  CHECK(aclDestroyBoolArray(bools));
  const float floats[] = {1.5f};
  aclFloatArray *array = aclCreateFloatArray(floats, 1);
  CHECK(aclDestroyFloatArray(array));
  aclIntArray *empty = aclCreateIntArray(nullptr, 0);
  CHECK(aclGetIntArraySize(empty, &count));
  EXPECT(empty != nullptr && count == 0);
  CHECK(aclDestroyIntArray(empty));
  int64_t active = 5;
  EXPECT(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &active) == 0 && active == 0);
}

// Prints what a program sees whose emulator cannot start, and that nothing says success.
void Broken() {
  int code = aclInit(nullptr);
  const char *text = aclGetRecentErrMsg();
  std::printf("aclInit %d\n%s\n", code, text != nullptr ? text : "no message");
  void *data = nullptr;
  int32_t device = 0;
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  EXPECT(code != 0 && text != nullptr);
  EXPECT(aclrtSetDevice(0) != 0 && aclrtMalloc(&data, 8, ACL_MEM_MALLOC_HUGE_FIRST) != 0 && aclrtGetDevice(&device) != 0);
  EXPECT(aclrtSynchronizeDevice() != 0 && aclFinalize() != 0 && aclnnInit(nullptr) != 0 && data == nullptr);
  EXPECT(aclCreateTensor(nullptr, 0, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr) == nullptr);
  EXPECT(aclnnSeluBackwardGetWorkspaceSize(nullptr, nullptr, nullptr, &size, &executor) != 0 && executor == nullptr);
  EXPECT(aclnnSeluBackward(nullptr, 0, nullptr, nullptr) != 0 && aclDestroyTensor(nullptr) != 0);
  EXPECT(aclrtGetSocName() == nullptr && aclrtGetTaskIdFromExceptionInfo(nullptr) == UINT32_MAX);
  EXPECT(aclGetRecentErrMsg() != nullptr);
}

void SmallStack() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256u << 10);
  pthread_t thread;
  EXPECT(pthread_create(&thread, &attributes, [](void *) -> void * { Start(); return nullptr; }, nullptr) == 0);
  pthread_join(thread, nullptr);
  Work(0, 50);
}

void Output(int lines) {
  Start();
  for (int i = 0; i < lines; i++) std::printf("line %d\n", i);
  std::exit(7);  // with a full buffer
}

}  // namespace

int main(int count, char **arguments) {
  EXPECT(count == 2);
  const std::string name = arguments[1];
  if (name == "threads") {
    Start();
    Threads(4, 1000);
  } else if (name == "first") {
    First();
  } else if (name == "fork") {
    Fork();
  } else if (name == "fork-first") {
    ForkFirst();
  } else if (name == "sigint") {
    Sigint(false);
  } else if (name == "sigint-handler") {
    Sigint(true);
  } else if (name == "busy") {
    Busy();
  } else if (name == "messages") {
    Messages();
  } else if (name == "not-emulated") {
    NotEmulated();
  } else if (name == "values") {
    Values();
  } else if (name == "broken") {
    Broken();
  } else if (name == "small-stack") {
    SmallStack();
  } else if (name == "output") {
    Output(20000);
  } else {
    std::fprintf(stderr, "no scenario %s\n", name.c_str());
    return 2;
  }
  std::printf("%s: right\n", name.c_str());
  return 0;
}
