package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// program unpacks the program of the release.
func program(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out(t, "tar", "-xzf", filepath.Join(made.dir, "selvage_1.2.3_linux_"+runtime.GOARCH+".tar.gz"), "-C", dir, "selvage")
	return filepath.Join(dir, "selvage")
}

// TestUnit: the service speaks the notify protocol, has a watchdog, may divide its
// cgroup, and no more than it needs.
func TestUnit(t *testing.T) {
	b, err := os.ReadFile("files/selvage.service")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	for _, want := range []string{
		"Type=notify", "NotifyAccess=main", "WatchdogSec=60", "Restart=always", "User=selvage", "StateDirectory=selvage",
		"StateDirectoryMode=0700",
		"Delegate=yes", "ProtectControlGroups=no", // read-only cgroups could not be divided
		"NoNewPrivileges=yes", "CapabilityBoundingSet=", "AmbientCapabilities=", "ProtectSystem=strict",
		"ProtectHome=read-only", "PrivateTmp=yes",
		"PrivateDevices=yes", "ProtectKernelTunables=yes", "ProtectKernelModules=yes", "ProtectKernelLogs=yes",
		"RestrictSUIDSGID=yes", "LockPersonality=yes",
		"SystemCallArchitectures=native", "UMask=0077",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("the unit has no %s", want)
		}
	}
}

// TestGoReleaserMakesTheSame: its configuration has our platforms and flags.
func TestGoReleaserMakesTheSame(t *testing.T) {
	b, err := os.ReadFile("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var conf struct {
		Version int
		Builds  []struct {
			Main, Binary                 string
			Env, Flags, Ldflags, Targets []string
		}
		Checksum struct {
			Name string `yaml:"name_template"`
		}
	}
	if err := yaml.Unmarshal(b, &conf); err != nil || len(conf.Builds) != 1 {
		t.Fatalf("%+v, %v", conf, err)
	}
	build := conf.Builds[0]
	var want []string
	for _, s := range targets {
		want = append(want, strings.ReplaceAll(s, "/", "_"))
	}
	if !slices.Equal(build.Targets, want) {
		t.Errorf("platforms %v, want %v", build.Targets, want)
	}
	if conf.Version != 2 || build.Main != "./cmd/node" || build.Binary != "selvage" || !slices.Contains(build.Env,
		"CGO_ENABLED=0") ||
		!slices.Contains(build.Flags, "-trimpath") || !strings.Contains(strings.Join(build.Ldflags, " "),
		"-X main.version=") || conf.Checksum.Name != "SHA256SUMS" {
		t.Errorf("%+v", conf)
	}
}

// TestKubernetesManifest: what the manifest says fits together, and the program
// takes its arguments.
func TestKubernetesManifest(t *testing.T) {
	b, err := os.ReadFile("kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type port struct {
		Name          string
		Port          int
		ContainerPort int `yaml:"containerPort"`
		Protocol      string
	}
	type object struct {
		Kind     string
		Metadata struct{ Name, Namespace string }
		Spec     struct {
			ClusterIP   string `yaml:"clusterIP"`
			ServiceName string `yaml:"serviceName"`
			Ports       []port
			Template    struct {
				Spec struct {
					Containers []struct {
						Args            []string
						Env             []struct{ Name string }
						Ports           []port
						SecurityContext struct {
							ReadOnly   bool  `yaml:"readOnlyRootFilesystem"`
							Escalation *bool `yaml:"allowPrivilegeEscalation"`
						} `yaml:"securityContext"`
					}
				}
			}
		}
	}
	kinds := map[string]object{}
	for d := yaml.NewDecoder(bytes.NewReader(b)); ; {
		var o object
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if o.Metadata.Namespace != "selvage" {
			t.Errorf("%s %s is in no namespace", o.Kind, o.Metadata.Name)
		}
		kinds[o.Kind+"/"+o.Metadata.Name] = o
	}
	set, peers := kinds["StatefulSet/selvage"], kinds["Service/selvage-peers"]
	if len(set.Spec.Template.Spec.Containers) != 1 || set.Spec.ServiceName != "selvage-peers" ||
		peers.Spec.ClusterIP != "None" {
		t.Fatalf("objects %v", kinds)
	}
	if _, ok := kinds["PodDisruptionBudget/selvage"]; !ok {
		t.Error("nothing keeps two of three voters")
	}
	c := set.Spec.Template.Spec.Containers[0]
	if !c.SecurityContext.ReadOnly || c.SecurityContext.Escalation == nil || *c.SecurityContext.Escalation {
		t.Error("the container may do more than it needs")
	}
	if !slices.ContainsFunc(c.Ports, func(p port) bool {
		return p.Name == "mesh" && p.Protocol == "UDP" && p.ContainerPort == peers.Spec.Ports[0].Port
	}) {
		t.Errorf("ports %+v and %+v", c.Ports, peers.Spec.Ports)
	}
	bin := program(t)
	if b, err := exec.CommandContext(t.Context(), bin, append(slices.Clone(c.Args), "--help")...).
		CombinedOutput(); err != nil {
		t.Errorf("selvage %v: %v\n%s", c.Args, err, b)
	}
	for _, e := range c.Env { // a variable is a flag's name
		if e.Name == "SELVAGE_API_URL" { // but for this one, which is the command line's
			continue
		}
		flag := "--" + strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(e.Name, "SELVAGE_"), "_", "-"))
		if help := out(t, bin, "up", "--help"); !strings.Contains(help, flag+" ") {
			t.Errorf("%s: the program has no %s", e.Name, flag)
		}
	}
}
