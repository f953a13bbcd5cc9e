package container

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/adapter/live"
	"github.com/selvage-mesh/selvage/adapter/process"
)

// config is the adapterConfig of a container.
type config struct {
	Image   string                `json:"image"`
	Command string                `json:"command"`
	Args    []string              `json:"args"`
	Env     map[string]live.Value `json:"env"`
	Dir     string                `json:"cwd"`
	Mounts  []mount               `json:"mounts"`
	Limits  struct {
		MemoryMB  *int64  `json:"memoryMb"`
		Processes *int64  `json:"processes"`
		CPUs      float64 `json:"cpus"`
		OpenFiles int64   `json:"openFiles"`
	} `json:"limits"`
	Network  string   `json:"network"`
	User     string   `json:"user"`
	ReadOnly *bool    `json:"readOnly"`
	Pull     string   `json:"pull"`
	Timeout  *float64 `json:"timeoutSec"`
	Grace    *float64 `json:"graceSec"`
}

// Settings returns a zero value of what adapterConfig is decoded into.
func Settings() any { return config{} }

type mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"readOnly"`
}

// imageName matches names that engines accept, except those that look like a flag.
var (
	imageName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,511}$`)
	userName  = regexp.MustCompile(`^[0-9]{1,10}(:[0-9]{1,10})?$`)
)

func (c config) check() error {
	var errs []error
	bad := func(when bool, format string, args ...any) {
		if when {
			errs = append(errs, fmt.Errorf("adapterConfig: "+format, args...))
		}
	}
	bad(c.Image == "", "a container needs an image")
	bad(c.Image != "" && !imageName.MatchString(c.Image), "image %q is no name of an image", c.Image)
	bad(strings.HasPrefix(c.Command, "-") || strings.ContainsRune(c.Command, 0), "command %q is no program", c.Command)
	bad(c.Dir != "" && !filepath.IsAbs(c.Dir), "cwd %q is not absolute", c.Dir)
	bad(!slices.Contains([]string{"", "none", "host", "bridge"}, c.Network),
		"network is none, host or bridge, not %q", c.Network)
	bad(!slices.Contains([]string{"", "missing", "never", "always"}, c.Pull),
		"pull is missing, never or always, not %q", c.Pull)
	bad(c.User != "" && !userName.MatchString(c.User), "user is uid or uid:gid, not %q", c.User)
	bad(c.memory() < 0 || c.processes() < 0 || c.Limits.OpenFiles < 0 || !(c.Limits.CPUs >= 0 && c.Limits.CPUs <= 4096),
		"limits must not be negative")
	bad(len(c.Mounts) > maxMounts, "there are more than %d mounts", maxMounts)
	for _, m := range c.Mounts {
		bad(!filepath.IsAbs(m.Source) || !filepath.IsAbs(m.Target) || filepath.Clean(m.Target) == "/" ||
			strings.ContainsAny(m.Target, ",\"\n\r"),
			"mount %q at %q: both are absolute paths without commas", m.Source, m.Target)
		bad(slices.Contains([]string{workAt, homeAt, scratchAt, socketAt, "/tmp"}, filepath.Clean(m.Target)),
			"mount at %s, which the run has", m.Target)
	}
	return errors.Join(errs...)
}

func (c config) memory() int64 { return or(c.Limits.MemoryMB, DefaultMemoryMB) }

func (c config) processes() int64 { return or(c.Limits.Processes, DefaultProcesses) }

func or(n *int64, standard int64) int64 {
	if n == nil {
		return standard
	}
	return *n
}

func (c config) network() string {
	if c.Network == "" {
		return "none"
	}
	return c.Network
}

func (c config) timeout() (time.Duration, string) { return process.Timeout(c.Timeout) }

func (c config) grace() time.Duration { return process.Grace(c.Grace) }

// Ulimits returns the engine's arguments that bound open files and processes by what this node itself may have, so that
// the engine does not fail by asking for more.
func Ulimits() (args []string) {
	files, processes := most()
	for _, l := range []struct {
		name string
		most int64
	}{{"nofile", files}, {"nproc", processes}} {
		if l.most > 0 {
			args = append(args, "--ulimit", fmt.Sprintf("%s=%d:%d", l.name, l.most, l.most))
		}
	}
	return args
}
