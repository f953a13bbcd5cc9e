package kernel

import (
	"cmp"
	"errors"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	// maxCommand bounds the words of a command, maxWord each of them and each variable, in
	// bytes, and maxEnv the variables.
	maxCommand = 256
	maxWord    = 32 << 10
	maxEnv     = 256
	// MaxSpec bounds a specification as JSON, in bytes.
	MaxSpec = 128 << 10
)

// An OnLimit says what happens to a process at 100 % of a limit.
type OnLimit string

// What happens at a limit. Memory and disk always end the process: a suspended one keeps them.
const (
	EndOnLimit     OnLimit = "end"
	SuspendOnLimit OnLimit = "suspend"
)

// A Spec says what to start. The zero values of most fields are defaults.
type Spec struct {
	Name    string   `json:"name,omitempty"`    // default: the program's, the module's or the image's
	Backend Kind     `json:"backend,omitempty"` // native, wasm or container; default: by what is given
	Command []string `json:"command,omitempty"` // program and arguments
	// Module is the SHA-256 of a module that the mesh stores, ModuleBytes its size.
	Module      string            `json:"module,omitempty"`
	ModuleBytes int64             `json:"module_bytes,omitempty"`
	Image       string            `json:"image,omitempty"` // of a container
	Env         map[string]string `json:"env,omitempty"`
	Dir         string            `json:"dir,omitempty"` // where a native command works; default: a folder of its own
	Parent      PID               `json:"parent_pid,omitempty"`
	Role        Role              `json:"role,omitempty"`
	Agency      Agency            `json:"agency,omitzero"`
	// Capabilities default to those that the parent may give.
	Capabilities *Capabilities `json:"capabilities,omitempty"`
	Restart      Strategy      `json:"restart,omitempty"` // default permanent: what ended stays ended
	Group        string        `json:"group,omitempty"`   // of the supervisor; default: one of its own
	OnLimit      OnLimit       `json:"on_limit,omitempty"`
	// Company has the process: it reaches no other company's. "": it belongs to the mesh.
	Company string `json:"company,omitempty"`
	// App is the name of the company's app that the process is part of. "": its parent's.
	App string `json:"app,omitempty"`
	// By is the ID of the person who asked for the process or declared it. What it spawns has none.
	By string `json:"by,omitempty"`
	// TimeMs ends the process that long after its start, and OutputBytes is what its log keeps of it; 0: no bound of
	// its own. The end of what was kept is told when it fails.
	TimeMs      int64 `json:"time_ms,omitempty"`
	OutputBytes int64 `json:"output_bytes,omitempty"`
}

var (
	// Lengths are checked apart: a bound within a pattern is compiled as so many copies.
	nameSyntax  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	imageSyntax = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]*$`)
	hashSyntax  = regexp.MustCompile(`^[0-9a-f]*$`)
	roles       = []Role{RoleSupervisor, RoleService, RoleWorker, RoleUser, RoleCustom}
)

const (
	maxName   = 64
	maxGroup  = 8 // names
	maxImage  = 512
	hashChars = 64
)

func isName(s string) bool { return len(s) <= maxName && nameSyntax.MatchString(s) }

// isGroup reports whether s is names joined by slashes.
func isGroup(s string) bool {
	names := strings.Split(s, "/")
	return len(names) <= maxGroup && !slices.ContainsFunc(names, func(n string) bool { return !isName(n) })
}

func isImage(s string) bool { return len(s) <= maxImage && imageSyntax.MatchString(s) }

func isHash(s string) bool { return len(s) == hashChars && hashSyntax.MatchString(s) }

// WithDefaults returns s with its defaults filled in.
func (s Spec) WithDefaults() Spec {
	if s.Backend == "" {
		switch {
		case s.Module != "":
			s.Backend = KindWasm
		case s.Image != "":
			s.Backend = KindContainer
		default:
			s.Backend = KindNative
		}
	}
	if s.Name == "" {
		s.Name = s.named()
	}
	s.Role = cmp.Or(s.Role, RoleCustom)
	s.Restart = cmp.Or(s.Restart, Permanent)
	s.OnLimit = cmp.Or(s.OnLimit, EndOnLimit)
	return s
}

// named derives a name from what is started.
func (s Spec) named() string {
	name := ""
	switch {
	case s.Backend == KindContainer:
		name, _, _ = strings.Cut(filepath.Base(s.Image), ":")
	case len(s.Command) > 0:
		name = filepath.Base(s.Command[0])
	case s.Module != "":
		name = "module-" + s.Module[:min(8, len(s.Module))]
	}
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune("._-", r) || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, name)
	name = strings.TrimLeft(name[:min(len(name), 64)], "._-")
	return cmp.Or(name, "process")
}

// Validate reports every problem of a specification with its defaults at once.
func (s Spec) Validate() error {
	var errs []error
	bad := func(when bool, format string, args ...any) {
		if when {
			errs = append(errs, errorf(BadRequest, format, args...))
		}
	}
	bad(!isName(s.Name),
		"name %q: 1 to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit", s.Name)
	bad(!slices.Contains([]Kind{KindNative, KindWasm, KindContainer}, s.Backend),
		"backend %q: give native, wasm or container", s.Backend)
	bad(s.Backend == KindNative && (len(s.Command) == 0 || s.Command[0] == ""),
		"command: required, the program and its arguments")
	bad(s.Backend != KindWasm && s.Module != "", "module: only for the backend wasm")
	bad(s.Backend == KindWasm && !isHash(s.Module), "module: the SHA-256 of a module, 64 digits of 0-9 and a-f")
	bad(s.Backend == KindContainer && !isImage(s.Image), "image %q: the name of an image is required", s.Image)
	bad(s.Backend != KindContainer && s.Image != "", "image: only for the backend container")
	bad(s.Dir != "" && !filepath.IsAbs(s.Dir), "dir %q: give an absolute path", s.Dir)
	bad(len(s.Command) > maxCommand, "command: at most %d words", maxCommand)
	for _, w := range s.Command {
		bad(len(w) > maxWord || strings.ContainsRune(w, 0), "command: a word has at most %d bytes and no zero byte", maxWord)
	}
	bad(len(s.Env) > maxEnv, "env: at most %d variables", maxEnv)
	for _, k := range slices.Sorted(maps.Keys(s.Env)) {
		v := s.Env[k]
		bad(k == "" || strings.ContainsAny(k, "=\x00") || strings.ContainsRune(v, 0) || len(k)+len(v) > maxWord,
			"env %q: a name without = and a value of at most %d bytes, both without zero bytes", k, maxWord)
	}
	bad(s.App != "" && !isName(s.App), "app %q: the name of an app", s.App)
	bad(!slices.Contains(roles, s.Role), "role %q: give supervisor, service, worker, user or custom", s.Role)
	bad(!slices.Contains(Strategies, s.Restart),
		"restart %q: give one_for_one, one_for_all, rest_for_one, transient or permanent", s.Restart)
	bad(s.Group != "" && !isGroup(s.Group), "group %q: names joined by slashes, such as app/web", s.Group)
	bad(s.OnLimit != EndOnLimit && s.OnLimit != SuspendOnLimit, "on_limit %q: give end or suspend", s.OnLimit)
	bad(s.TimeMs < 0 || s.OutputBytes < 0, "time_ms and output_bytes: not below 0")
	bad(s.Agency.MaxChildren < 0, "agency.max_children: %d is below 0", s.Agency.MaxChildren)
	if s.Capabilities != nil {
		if err := s.Capabilities.Limits.Validate(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
