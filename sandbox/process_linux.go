package sandbox

import "syscall"

// limitProcess bounds what this process may allocate and how long it may work.
// What can not be set is left to whoever started it.
func limitProcess() {
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: compileMemory, Max: compileMemory})
	_ = syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: uint64(DefaultCompileTime.Seconds()), Max: uint64(DefaultCompileTime.Seconds())})
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 10)
}
