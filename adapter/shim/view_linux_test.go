package shim

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// asUser runs a test as a user that is not root. As root it starts the test binary again as
// such a user, and returns false.
func asUser(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return true
	}
	const daemon = 1 // not nobody, which stands for users that a namespace does not map
	tmp, err := os.MkdirTemp("", "selvage-view-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(tmp) })
	if err := os.Chown(tmp, daemon, daemon); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = tmp, []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + tmp, "HOME=" + tmp}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: daemon, Gid: daemon}}
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("as another user: %v\n%s", err, out)
	case bytes.Contains(out, []byte("--- SKIP")):
		t.Skipf("as another user:\n%s", out)
	case !bytes.Contains(out, []byte("--- PASS: "+t.Name())):
		t.Errorf("as another user nothing was tested:\n%s", out)
	}
	return false
}

// needView skips the test if the kernel gives this user no namespaces.
func needView(t *testing.T) {
	t.Helper()
	needLandlock(t)
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/tmp")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("this machine gives users no namespaces: %v: %s", err, out)
	}
}

// A node that is not root hides names too, if the kernel lets its user have namespaces: names
// in its own data, and in the data of a node next to it.
func TestHiddenNamesAreNotListedWithoutRoot(t *testing.T) {
	if !asUser(t) {
		return
	}
	needView(t)
	home, data, work := house(t)
	other := filepath.Join(data, "runs", "workspaces", "another")
	beside := filepath.Join(home, "beside")
	for _, d := range []string{other, beside} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(beside, keyFile), []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	spec, _ := script(t,
		`find $DATA $BESIDE -mindepth 1 | sort; ls $HOME/project; ls / > /dev/null && echo LISTED; echo x > new; `+
			`umount $DATA 2> /dev/null && echo UNCOVERED
unshare -Um true 2> /dev/null; unshare -Urm umount $DATA 2> /dev/null && echo UNCOVERED; id -u; grep CapEff `+
			`/proc/self/status; kill -0 $$ && echo SIGNALLED`)
	spec.Env = append(spec.Env, "DATA="+data, "BESIDE="+beside, "HOME="+home)
	spec.Dir = work
	spec.Guard = &Guard{Show: []string{work}}
	out, e, p := runs(t, Floor{Hide: []string{data}, Nodes: filepath.Join(home, "nodes")}, spec)
	want := strings.Join([]string{data + "/runs", data + "/runs/workspaces", work, "main.c", "LISTED",
		itoa(int64(os.Geteuid())), "CapEff:\t0000000000000000", "SIGNALLED", ""}, "\n")
	if out != want || e != (Exit{}) {
		t.Errorf("the child saw %q and ended %+v, want %q", out, e, want)
	}
	if len(p.Notes) > 0 {
		t.Errorf("notes %q", p.Notes)
	}
	// If the machine forbids it, names can be listed but not read, and a note says so.
	spec, _ = script(t, `cat $DATA/key 2> /dev/null; ls $DATA; id -u`)
	spec.Env, spec.Dir, spec.Guard = append(spec.Env, "DATA="+data), work, &Guard{Show: []string{work}}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err = Start(append(append(slices.Clone(self), Floor{Hide: []string{data}}.Args()...), notApart,
		"no namespaces here"), spec, w, w)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	all, _ := io.ReadAll(r)
	wait(t, p)
	if got := string(all); got != "key\nruns\nstore\n"+itoa(int64(os.Geteuid()))+"\n" || len(p.Notes) != 1 ||
		!strings.Contains(p.Notes[0], "can be listed") || !strings.Contains(p.Notes[0], "no namespaces here") {
		t.Errorf("the child saw %q, notes %q", got, p.Notes)
	}
	for _, there := range []string{filepath.Join(work, "new"), other, filepath.Join(data, "key")} {
		if _, err := os.Stat(there); err != nil {
			t.Error(err)
		}
	}
}

// An ssh client refuses included configuration files unless they belong to root or its user;
// in a run they belong to its user. The test, as root, makes such a file in its own mounts.
func TestSSHReadsItsConfigurationWithoutRoot(t *testing.T) {
	const stage = "SELVAGE_TEST_STAGE"
	const included = "/etc/ssh/ssh_config.d/20-selvage-test.conf"
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("no ssh")
	}
	if b, err := os.ReadFile(sshConfig); err != nil || !bytes.Contains(b, []byte("Include /etc/ssh/ssh_config.d/*.conf")) {
		t.Skip("no configuration of ssh that includes others")
	}
	switch {
	case os.Geteuid() == 0 && os.Getenv(stage) == "":
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), stage+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		switch out, err := cmd.CombinedOutput(); {
		case err != nil && !bytes.Contains(out, []byte("--- FAIL")):
			t.Skipf("no mounts of the test's own: %v: %s", err, out)
		case err != nil:
			t.Errorf("%s", out)
		case bytes.Contains(out, []byte("--- SKIP")):
			t.Skipf("%s", out)
		}
		return
	case os.Geteuid() == 0:
		const folder = "/etc/ssh/ssh_config.d"
		if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			t.Skip(err)
		}
		if err := syscall.Mount("none", folder, "tmpfs", 0, "mode=0755"); err != nil {
			t.Skip(err)
		}
		if err := os.WriteFile(included, []byte("Include "+folder+"/more\nHost selvage-test\n  Port 2001\n"),
			0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(folder+"/more", []byte("Host selvage-test\n  User canary\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !asUser(t) {
		return
	}
	needView(t)
	if _, err := os.Stat(included); err != nil {
		t.Skip("only root can make a file to include")
	}
	_, data, work := house(t)
	spec, _ := script(t, `ssh -T -G selvage-test 2>&1 | grep -E '^(user|port|Bad) ' | sort; echo end; ls $WORK/../../..`)
	spec.Dir, spec.Env, spec.Guard = work, append(spec.Env, "WORK="+work, "HOME="+work), &Guard{Show: []string{work}}
	out, _, _ := runs(t, Floor{Hide: []string{data}}, spec)
	if want := "port 2001\nuser canary\nend\nruns\n"; out != want {
		t.Errorf("the child saw %q, want %q", out, want)
	}
}
