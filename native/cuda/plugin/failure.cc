#include "cuda/plugin/failure.h"

namespace gnnd::cuda {

namespace {

// Codes of failures of the host and its devices, before anything runs; else GNND_DEVICE_INTERNAL.
uint32_t CodeOfHost(int native, uint32_t driver_version) {
  switch (native) {
    case 34:  // StubLibrary
    case 35:  // InsufficientDriver
    case 36:  // CallRequiresNewerDriver
      return driver_version == 0 ? GNND_DEVICE_NO_DRIVER : GNND_DEVICE_DRIVER_TOO_OLD;
    case 46:   // DevicesUnavailable
    case 216:  // DeviceAlreadyInUse
      return GNND_DEVICE_UNAVAILABLE;
    case 100:  // NoDevice
      return GNND_DEVICE_NO_DEVICE;
    case 803:  // SystemDriverMismatch
    case 804:  // CompatNotSupportedOnDevice
      return GNND_DEVICE_DRIVER_MISMATCH;
    case 802:  // SystemNotReady
    case 805:  // MpsConnectionFailed
    case 807:  // MpsServerNotReady
    case 808:  // MpsMaxClientsReached
    case 809:  // MpsMaxConnectionsReached
      return GNND_DEVICE_NOT_READY;
    case 98:   // InvalidDeviceFunction
    case 200:  // InvalidKernelImage
    case 209:  // NoKernelImageForDevice
    case 218:  // InvalidPtx
    case 222:  // UnsupportedPtxVersion
      return GNND_DEVICE_NO_KERNEL_IMAGE;
    default:
      return GNND_DEVICE_INTERNAL;
  }
}

// Codes of failures after which the process must end; else GNND_DEVICE_INTERNAL.
uint32_t CodeOfEnd(int native) {
  switch (native) {
    case 220:  // NvlinkUncorrectable
    case 709:  // ContextIsDestroyed
    case 806:  // MpsRpcFailure
    case 810:  // MpsClientTerminated
      return GNND_DEVICE_LOST;
    case 214:  // ECCUncorrectable
    case 226:  // Contained
    case 700:  // IllegalAddress
    case 716:  // MisalignedAddress
    case 717:  // InvalidAddressSpace
      return GNND_DEVICE_MEMORY_FAULT;
    case kBrokenKernel:
    case 53:   // PriorLaunchFailure
    case 702:  // LaunchTimeout
    case 710:  // Assert
    case 714:  // HardwareStackError
    case 715:  // IllegalInstruction
    case 718:  // InvalidPc
    case 719:  // LaunchFailure
      return GNND_DEVICE_LAUNCH_FAILED;
    default:
      return GNND_DEVICE_INTERNAL;
  }
}

}  // namespace

uint32_t CodeOf(int native, uint32_t driver_version, Doing doing) {
  const bool is_registering = doing == Doing::kRegistering;
  switch (native) {
    case 0:
      return GNND_DEVICE_OK;
    case kOverBudget:
      return GNND_DEVICE_OVER_BUDGET;
    case kNotRegistered:
    case 713:  // HostMemoryNotRegistered
      return GNND_DEVICE_NOT_REGISTERED;
    case kNoKernel:
    case kNoMonitor:
    case 217:  // PeerAccessUnsupported
      return GNND_DEVICE_NOT_SUPPORTED;
    case 1:    // InvalidValue: registering read-only memory without the flag for it
    case 712:  // HostMemoryAlreadyRegistered
      return is_registering ? GNND_DEVICE_REGISTER_REFUSED : GNND_DEVICE_BAD_ARGUMENT;
    case 2:  // MemoryAllocation
      return is_registering ? GNND_DEVICE_REGISTER_REFUSED : GNND_DEVICE_OUT_OF_MEMORY;
    case 801:  // NotSupported: read-only memory, confidential computing
      return is_registering ? GNND_DEVICE_REGISTER_REFUSED : GNND_DEVICE_NOT_SUPPORTED;
    case kBadArgument:
    case 400:  // InvalidResourceHandle: the process that made it is gone
    case 17:   // InvalidDevicePointer
    case 101:  // InvalidDevice
      return GNND_DEVICE_BAD_ARGUMENT;
    case 600:  // NotReady
      return GNND_DEVICE_UNFINISHED;
    default:
      const uint32_t end = CodeOfEnd(native);
      return end == GNND_DEVICE_INTERNAL ? CodeOfHost(native, driver_version) : end;
  }
}

bool IsSticky(int native) {
  const uint32_t code = CodeOf(native, 1);
  return code == GNND_DEVICE_LOST || code == GNND_DEVICE_MEMORY_FAULT ||
         code == GNND_DEVICE_LAUNCH_FAILED || native == 999 || native == 4;
}

std::string VersionText(uint32_t cuda_version) {
  return std::to_string(cuda_version / 1000) + "." + std::to_string(cuda_version % 1000 / 10);
}

std::string DriverFor(uint32_t cuda_version) {
  // From CUDA's release notes: the oldest driver of each major version.
  switch (cuda_version / 1000) {
    case 11:
      return "450";
    case 12:
      return "525";
    case 13:
      return "580";
    default:
      return "";
  }
}

std::string RemedyOf(uint32_t code, uint32_t driver_version, uint32_t runtime_version) {
  switch (code) {
    case GNND_DEVICE_NO_DRIVER:
      return "install NVIDIA's driver (" + DriverFor(runtime_version) +
             " or later), or work on CPU devices; in a container, start it with the host's GPUs "
             "(--gpus all)";
    case GNND_DEVICE_DRIVER_TOO_OLD:
      return "update NVIDIA's driver to " + DriverFor(runtime_version) +
             " or later; it serves CUDA " + VersionText(driver_version) + ", this plug-in needs " +
             VersionText(runtime_version);
    case GNND_DEVICE_DRIVER_MISMATCH:
      return "the driver was updated and its kernel module was not: restart the host, or reload "
             "the "
             "module";
    case GNND_DEVICE_NOT_READY:
      return "start what the GPUs wait for: nvidia-fabricmanager on hosts with NVSwitch, the MPS "
             "server where there is one";
    case GNND_DEVICE_NO_DEVICE:
      return "the driver shows this process no GPU: look at CUDA_VISIBLE_DEVICES, at the rights of "
             "/dev/nvidia*, and with MIG at whether there are instances (nvidia-smi -L)";
    case GNND_DEVICE_UNAVAILABLE:
      return "another process has the GPU alone: end it, or set nvidia-smi -c DEFAULT";
    case GNND_DEVICE_NO_KERNEL_IMAGE:
      return "the plug-in was not compiled for this architecture: build gnnd on this host";
    case GNND_DEVICE_OVER_BUDGET:
      return "give the job more memory (resources.device_memory_bytes), or a smaller batch or "
             "cache";
    case GNND_DEVICE_OUT_OF_MEMORY:
      return "somebody else has the memory: nvidia-smi shows who; or give the job a smaller budget";
    case GNND_DEVICE_REGISTER_REFUSED:
      return "memory is copied in pieces through a pinned ring instead, which is slower; "
             "confidential "
             "computing and read-only mappings refuse it always, large ranges on some hosts";
    case GNND_DEVICE_LOST:
      return "the kernel's log says why (dmesg, \"Xid\"); nvidia-smi shows whether the GPU is back";
    case GNND_DEVICE_MEMORY_FAULT:
    case GNND_DEVICE_LAUNCH_FAILED:
      return "a fault of the GPU or of gnnd: look for \"Xid\" in dmesg, and tell us if there is "
             "none";
    default:
      return "";
  }
}

uint32_t Tell(const Failure& failure, gnnd_device_error* error) {
  const uint32_t code = CodeOf(failure.native, failure.driver_version, failure.doing);
  if (error == nullptr) return code;
  *error = {};
  error->code = code;
  error->sticky = IsSticky(failure.native) ? 1 : 0;
  error->native_code = failure.native > 0 ? failure.native : 0;
  std::string message = failure.what;
  if (!failure.said.empty()) message += ": " + failure.said;
  if (failure.native > 0) message += " (" + std::to_string(failure.native) + ")";
  Put(error->message, message);
  Put(error->remedy, RemedyOf(code, failure.driver_version, failure.runtime_version));
  return code;
}

}  // namespace gnnd::cuda
