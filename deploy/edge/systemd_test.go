//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A booted is a container whose first process is systemd.
type booted struct {
	t    *testing.T
	init string // process ID of systemd, outside
}

// in runs a program in the container.
func (b booted) in(name string, args ...string) (string, error) {
	return b.reads(nil, name, args...)
}

// reads runs a program in the container that reads something.
func (b booted) reads(stdin io.Reader, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"-t", b.init, "-m", "-u", "-i", "-n", "-p", "-C", "-r",
		"-w", name}, args...)...)
	cmd.Env, cmd.Stdin = []string{"PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C",
		"SYSTEMD_PAGER=", "SYSTEMD_COLORS=0"}, stdin
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (b booted) must(name string, args ...string) string {
	b.t.Helper()
	out, err := b.in(name, args...)
	if err != nil {
		b.t.Fatalf("%s %s: %v\n%s\n%s", name, strings.Join(args, " "), err, out, b.log())
	}
	return out
}

// release puts the release of this machine's platform into the folder in which
// commands run, and a sudo where there is none.
func (b booted) release() {
	b.t.Helper()
	names := []string{"install.sh", "SHA256SUMS", "SHA256SUMS.sig", "selvage_1.2.3_" + runtime.GOARCH + ".deb",
		"selvage_1.2.3_linux_" + runtime.GOARCH + ".tar.gz"}
	var files bytes.Buffer
	tar := exec.CommandContext(b.t.Context(), "tar", append([]string{"-C", made.dir, "-cf", "-"}, names...)...)
	tar.Stdout = &files
	if err := tar.Run(); err != nil {
		b.t.Fatal(err)
	}
	if out, err := b.reads(&files, "tar", "-C", "/", "-xf", "-"); err != nil {
		b.t.Fatalf("%v: %s", err, out)
	}
	b.must("sh", "-c",
		`command -v sudo || { printf '#!/bin/sh\nexec "$@"\n' >/usr/local/bin/sudo && chmod +x /usr/local/bin/sudo; }`)
}

// wire connects two machines.
func wire(t *testing.T, a, b booted) {
	t.Helper()
	out(t, "ip", "link", "add", "eth0", "netns", a.init, "type", "veth", "peer", "name", "eth0", "netns", b.init)
	for i, m := range []booted{a, b} {
		m.must("ip", "addr", "add", fmt.Sprintf("10.78.0.%d/24", i+1), "dev", "eth0")
		m.must("ip", "link", "set", "eth0", "up")
		m.must("hostname", fmt.Sprint("pi", i+1))
	}
}

// asTheGuideSays does on two machines what the guide tells: on pi1 but for what
// goes over ssh, for which there is no need here, to pi2.
func asTheGuideSays(t *testing.T, guide string, pi1, pi2 booted) {
	t.Helper()
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	first, second, ok := strings.Cut(string(text), "\n## Without a package\n")
	if !ok {
		t.Fatal("the guide has no part that does without a package")
	}
	blocks := regexp.MustCompile("(?m)^```sh.*\n((?s:.*?))^```$").FindAllStringSubmatch(first, -1)
	blocks = append(blocks, regexp.MustCompile("(?m)^```sh other: deploy/edge.*\n((?s:.*?))^```$").
		FindAllStringSubmatch(second, -1)...)
	var done []string
	for _, block := range blocks {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimSpace(line)
			done = append(done, line)
			if far, ok := strings.CutPrefix(line, "ssh pi2 "); ok {
				pi2.must("sh", "-c", far)
				continue
			}
			if file, ok := strings.CutPrefix(line, "scp "); ok {
				file, _, _ = strings.Cut(file, " pi2:")
				if out, err := pi2.reads(strings.NewReader(pi1.must("cat", file)), "tee", file); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				continue
			}
			pi1.must("sh", "-c", line)
		}
	}
	t.Logf("%s: %s", guide, strings.Join(done, "; "))
	if len(done) != 7 {
		t.Errorf("the guide has %d commands, want 7", len(done))
	}
}

// shows returns what systemd says of the node's unit.
func (b booted) shows(property string) string {
	b.t.Helper()
	return b.must("systemctl", "show", "-P", property, "selvage.service")
}

func (b booted) log() string {
	out, _ := b.in("sh", "-c", "systemctl status --no-pager selvage; journalctl --no-pager -o cat -n 60")
	return out
}

// hidesNames tries under a unit with the same bounds whether runs get a view of the files
// in which the data directories hold nothing but their own, as the node itself tries it.
func (b booted) hidesNames() {
	b.t.Helper()
	const try = "/run/systemd/system/selvage-try.service"
	b.must("sh", "-c", `sed -e '/^Restart/d; /^Watchdog/d; /^NotifyAccess/d; /^Environment/d; s|^Type=.*|Type=oneshot|' `+
		`-e 's|^ExecStart=.*|ExecStart=/usr/bin/unshare --user --map-current-user --keep-caps /usr/bin/selvage `+
		`run-shim --try-apart|' `+
		`"$(systemctl show -P FragmentPath selvage.service)" > `+try+` && systemctl daemon-reload`)
	if out, err := b.in("systemctl", "start", "selvage-try.service"); err != nil {
		log, _ := b.in("journalctl", "--no-pager", "-o", "cat", "-u", "selvage-try")
		b.t.Errorf("runs of the service can list what the data directories hold: %v: %s\n%s", err, out, log)
	}
	b.must("rm", try)
}

// until waits for something that systemd does by itself.
func (b booted) until(what string, f func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !f(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("not within five minutes: %s\n%s", what, b.log())
		}
	}
}

var booting atomic.Int32

// boot starts systemd. A machine that has none, or lets nobody make such a
// container, skips the test and says what it lacks.
func boot(t *testing.T, deb string) booted {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can boot systemd in a container")
	}
	needs(t, "systemctl", "systemd-analyze", "unshare", "nsenter", "pivot_root", "dpkg")
	script, err := filepath.Abs("testdata/boot.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// systemd takes the cgroup that it begins in for the root of all, so it begins
	// in an empty one.
	group := ""
	for _, at := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(filepath.Join(at, "cgroup.controllers")); err == nil {
			group = filepath.Join(at, fmt.Sprintf("selvage-test-%d-%d", os.Getpid(), booting.Add(1)))
		}
	}
	if group == "" {
		t.Skip("this machine has no cgroups of version 2")
	}
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skip("no cgroup can be made here: ", err)
	}
	t.Cleanup(func() { removeCgroups(t, group) })
	console, err := os.Create(filepath.Join(dir, "console"))
	if err != nil {
		t.Fatal(err)
	}
	defer console.Close()
	said := func() string { b, _ := os.ReadFile(console.Name()); return string(b) }
	root := filepath.Join(dir, "machine")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c",
		`echo $$ > "$0/cgroup.procs" && exec unshare --mount --pid --fork --kill-child --uts --ipc --net --cgroup sh "$@"`,
		group, script, root, deb)
	cmd.Stdout, cmd.Stderr = console, console
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // its child goes with it
		<-ended
	})
	b := booted{t: t}
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		select {
		case err := <-ended:
			ended <- err
			t.Skipf("systemd can not be booted in a container here: %v: %s", err, said())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("systemd did not come up: %s", said())
		}
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		if err != nil || len(bytes.TrimSpace(children)) == 0 {
			continue
		}
		b.init = string(bytes.TrimSpace(children))
		if name, _ := os.ReadFile("/proc/" + b.init + "/comm"); string(name) != "systemd\n" {
			continue
		}
		if state, _ := b.in("systemctl", "is-system-running"); state == "running" || state == "degraded" {
			return b
		}
	}
}

// removeCgroups takes away what systemd made; what was in it is being killed.
func removeCgroups(t *testing.T, group string) {
	_ = os.WriteFile(filepath.Join(group, "cgroup.kill"), []byte("1"), 0)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var dirs []string
		filepath.WalkDir(group, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		for i := len(dirs) - 1; i >= 0; i-- { // children before their parents
			os.Remove(dirs[i])
		}
		if _, err := os.Stat(group); err != nil {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%s is still there", group)
			return
		}
	}
}

// TestServiceUnderSystemd installs the package on two machines whose first process
// is systemd, with the commands of the guide, and the second joins the first. There
// the node runs at once and as its own user, systemd hears when it serves, a node
// that is stuck is started again and is the one that it was, its cgroup is its own
// to divide, and an end is an orderly one.
func TestServiceUnderSystemd(t *testing.T) {
	if testing.Short() {
		t.Skip("boots systemd")
	}
	t.Parallel()
	needs(t, "ip", "openssl", "tar")
	deb := filepath.Join(made.dir, "selvage_1.2.3_"+runtime.GOARCH+".deb")
	b, second := boot(t, deb), boot(t, deb)
	wire(t, b, second)
	b.release()
	second.release()
	// A stuck node is found in ten seconds instead of a minute.
	b.must("sh", "-c",
		"mkdir -p /etc/systemd/system/selvage.service.d && printf "+
			"'[Service]\\nWatchdogSec=10\\nTimeoutAbortSec=5\\n' > /etc/systemd/system/selvage.service.d/quick.conf")
	asTheGuideSays(t, "../../docs/install-pi.md", b, second) // each install returns when the node has said that it serves
	b.until("the second machine is a member", func() bool {
		out, err := b.in("selvage", "members", "-o", "json")
		return err == nil && strings.Count(out, `"status": "alive"`) == 2
	})
	b.must("/usr/local/bin/selvage", "--version")
	b.must("rm", "/usr/local/bin/selvage")
	for property, want := range map[string]string{"ActiveState": "active", "SubState": "running", "StatusText": "serving",
		"Type": "notify", "WatchdogUSec": "10s", "NRestarts": "0", "User": "selvage", "UnitFileState": "enabled"} {
		if got := b.shows(property); got != want {
			t.Errorf("%s is %q, want %q", property, got, want)
		}
	}
	main := b.shows("MainPID")
	status := b.must("cat", "/proc/"+main+"/status")
	for _, want := range []string{"NoNewPrivs:\t1", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000",
		"Seccomp:\t2"} {
		if !strings.Contains(status, want) {
			t.Errorf("the node's process has no %q", want)
		}
	}
	if got := b.must("systemd-analyze", "security", "--no-pager", "selvage.service"); !exposedAtMost(got, 3) {
		t.Errorf("systemd-analyze security: %s", got[strings.LastIndexByte(got, '\n')+1:])
	}
	b.dividesItsCgroup()
	b.hidesNames()

	identity := b.must("cat", "/var/lib/selvage/membership")
	fed := b.shows("WatchdogTimestampMonotonic")
	b.until("the watchdog is fed", func() bool { return b.shows("WatchdogTimestampMonotonic") != fed })
	if got := b.shows("NRestarts"); got != "0" {
		t.Fatalf("a node that is well was started again %s times\n%s", got, b.log())
	}
	b.must("kill", "-STOP", main)
	b.until("the node that was stopped is started again", func() bool { return b.shows("NRestarts") == "1" })
	b.until("it serves", func() bool { return b.shows("StatusText") == "serving" && b.shows("ActiveState") == "active" })
	if now := b.shows("MainPID"); now == main {
		t.Error("it is the same process")
	}
	if got := b.must("cat", "/var/lib/selvage/membership"); got != identity {
		t.Error("it is not the node that it was")
	}
	if log := b.must("journalctl", "--no-pager", "-o", "cat", "-u", "selvage"); !strings.Contains(log,
		"Watchdog timeout") {
		t.Errorf("it was not the watchdog:\n%s", log)
	}

	b.must("systemctl", "stop", "selvage.service")
	for property, want := range map[string]string{"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0"} {
		if got := b.shows(property); got != want {
			t.Errorf("after an orderly end %s is %q, want %q\n%s", property, got, want, b.log())
		}
	}
	b.must("dpkg", "-r", "selvage")
	if out, err := b.in("selvage", "--version"); err == nil {
		t.Errorf("the program is still there: %s", out)
	}
	b.must("test", "-s", "/var/lib/selvage/membership") // its state stays
}

// dividesItsCgroup: the cgroup of the unit is the node's own, and where this
// machine has controllers for it, the node has made those below that hold its
// runs to their limits.
func (b booted) dividesItsCgroup() {
	b.t.Helper()
	group := "/sys/fs/cgroup" + b.shows("ControlGroup")
	if got := b.must("stat", "-c", "%U", group, group+"/cgroup.subtree_control"); got != "selvage\nselvage" {
		b.t.Errorf("the cgroup is of %q", got)
	}
	has := strings.Fields(b.must("cat", "/sys/fs/cgroup/cgroup.controllers"))
	for _, need := range []string{"memory", "pids"} {
		if !slices.Contains(has, need) {
			b.t.Logf("limits of cgroups are looked at by TestLimitsUnderSystemd: the controllers of this machine "+
				"are %v, %s belongs to version 1", has, need)
			return
		}
		if got := b.must("cat", group+"/cgroup.subtree_control"); !slices.Contains(strings.Fields(got), need) {
			b.t.Errorf("the node does not share out %s: %q\n%s", need, got, b.log())
		}
	}
	if strings.Contains(b.log(), "runs have no cgroups") {
		b.t.Errorf("runs have no cgroups:\n%s", b.log())
	}
}

var exposure = regexp.MustCompile(`exposure level for selvage\.service: ([0-9.]+)`)

func exposedAtMost(report string, most float64) bool {
	m := exposure.FindStringSubmatch(report)
	if m == nil {
		return false
	}
	level, err := strconv.ParseFloat(m[1], 64)
	return err == nil && level <= most
}
