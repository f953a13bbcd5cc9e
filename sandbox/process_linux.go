package sandbox

import (
	"os"
	"os/signal"
	"syscall"
)

// limitProcess bounds what this process may allocate and how long it may work, in
// seconds of a processor.
// What can not be set is left to whoever started it.
func limitProcess(seconds uint64) {
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: compileMemory, Max: compileMemory})
	// The kernel tells who has used up its time, and ends who goes on for a second more.
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGXCPU)
	go func() {
		<-told
		os.Exit(exitTooLong)
	}()
	_ = syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: seconds, Max: seconds + 1})
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 10)
}
