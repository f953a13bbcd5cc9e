package container

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Where both podman and docker are installed, the other tests use podman. This one runs them
// again with docker, by a daemon of its own: its state is in a folder of the test, and its
// network and mounts are in separate namespaces. It does not touch daemons, bridges or
// firewall rules of the machine.
func TestTheSameByDocker(t *testing.T) {
	t.Parallel()
	if os.Getenv("SELVAGE_BY_DOCKER") != "" {
		t.Skip("this is it")
	}
	if testing.Short() {
		t.Skip("starts a daemon")
	}
	if os.Getuid() != 0 {
		t.Skip("a docker daemon of its own takes root")
	}
	if why := linked(); why != "" {
		t.Skip(why)
	}
	path := os.Getenv("PATH")
	if dir, err := filepath.Abs("../../.cache/docker/usr"); err == nil {
		path = filepath.Join(dir, "bin") + ":" + filepath.Join(dir, "sbin") + ":" + path
	}
	for _, program := range []string{"dockerd", "containerd", "docker", "runc", "ip"} {
		if !slices.ContainsFunc(filepath.SplitList(path), func(dir string) bool {
			_, err := exec.LookPath(filepath.Join(dir, program))
			return err == nil
		}) {
			t.Skipf("there is no %s; `make clients` fetches docker where there is apt-get", program)
		}
	}
	// Paths of sockets must be short; a test's folder is not.
	short, err := os.MkdirTemp("", "sd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) }) // its mounts disappear with its namespace
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "play-docker", t.TempDir(), short)
	cmd.Env = append(os.Environ(), "PATH="+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
		Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	n := strings.Count("\n"+string(out), "\n--- PASS: Test")
	switch {
	case strings.Contains(string(out), noDaemon):
		t.Skip(string(out))
	case err != nil || n < 8:
		t.Errorf("by docker: %v, %d tests passed\n%s", err, n, out)
	}
	t.Logf("%d tests passed by docker", n)
}

const noDaemon = "docker's daemon does not start here"

func init() { playDocker = besideDocker }

// besideDocker starts a daemon, runs the tests with it, and ends it.
func besideDocker(dir, short string) int {
	_ = exec.Command("ip", "link", "set", "lo", "up").Run()
	at := func(name string) string { return filepath.Join(dir, name) }
	log, err := os.Create(at("log"))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	host := "unix://" + filepath.Join(short, "s")
	daemon := exec.Command("dockerd", "--data-root", at("data"), "--exec-root", filepath.Join(short, "x"), "-H", host,
		"-p", filepath.Join(short, "p"))
	daemon.Stdout, daemon.Stderr = log, log
	daemon.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := daemon.Start(); err != nil {
		fmt.Println(noDaemon, err)
		return 1
	}
	ended := make(chan struct{})
	go func() { _ = daemon.Wait(); close(ended) }()
	defer func() {
		_ = daemon.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = daemon.Process.Kill()
		}
	}()
	client, _ := exec.LookPath("docker") // the test has checked that it exists
	for begin := time.Now(); exec.Command(client, "-H", host, "version").Run() != nil; time.Sleep(200 * time.Millisecond) {
		late := time.Since(begin) > 3*time.Minute // a busy machine takes its time, and who skips has not looked
		select {
		case <-ended:
			late = true
		default:
		}
		if late {
			said, _ := os.ReadFile(at("log"))
			fmt.Println(noDaemon, end(string(said), 2000))
			return 1
		}
	}
	if err := os.Mkdir(at("bin"), 0o700); err != nil {
		fmt.Println(err)
		return 1
	}
	if err := os.Symlink(client, at("bin/docker")); err != nil {
		fmt.Println(err)
		return 1
	}
	tests := exec.Command("/proc/self/exe", "-test.v", "-test.timeout", "20m", "-test.run",
		"Container|Killed|Network|Limits")
	tests.Env = append(os.Environ(), "SELVAGE_BY_DOCKER=1", "DOCKER_HOST="+host, "PATH="+at("bin"))
	tests.Stdout, tests.Stderr = os.Stdout, os.Stdout
	if tests.Run() != nil {
		return 1
	}
	return 0
}
