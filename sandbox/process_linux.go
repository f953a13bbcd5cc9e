package sandbox

import "syscall"

// limitProcess bounds what this process may allocate and how long it may work, in
// seconds of a processor.
// What can not be set is left to whoever started it.
func limitProcess(seconds uint64) {
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: compileMemory, Max: compileMemory})
	_ = syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: seconds, Max: seconds})
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 10)
}
