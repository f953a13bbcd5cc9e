// Package containertest makes images for tests that run real containers.
package containertest

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/selvage-mesh/selvage/adapter/container"
)

// Image makes an image with a static program alone, as /NAME, which is removed when the test ends, and
// runs it once with args, with which it ends by itself. It returns the engine for [container.Config]; why
// says why there is none here, or why no container can be run.
func Image(t *testing.T, image, name string, program []byte, args ...string) (engine []string, why string) {
	t.Helper()
	e := container.Find()
	if e == nil {
		return nil, "neither podman nor docker is installed"
	}
	if filepath.Base(e[0]) == "podman" {
		if _, err := exec.LookPath("runc"); err == nil {
			e = append(e, "--runtime", "runc")
		}
	}
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	_ = w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(program))})
	_, _ = w.Write(program)
	_ = w.Close() // into memory
	cmd := exec.Command(e[0], append(slices.Clone(e[1:]), "import", "-", image)...)
	cmd.Stdin = &files
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Sprintf("no image can be made: %v: %.300s", err, said)
	}
	t.Cleanup(func() { _ = exec.Command(e[0], append(slices.Clone(e[1:]), "rmi", "-f", image)...).Run() })
	try := slices.Concat(e[1:],
		[]string{"run", "--rm", "-i", "--network", "none", "--memory", "64m", "--memory-swap", "64m", "--pids-limit", "50"},
		container.Ulimits(), []string{image, "/" + name}, args)
	if said, err := exec.Command(e[0], try...).CombinedOutput(); err != nil {
		return nil, fmt.Sprintf("no container can be run: %v: %.300s", err, said)
	}
	return e, ""
}
