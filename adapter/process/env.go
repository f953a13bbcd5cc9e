package process

import (
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/adapter/live"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
)

// baseNames are the variables that a run inherits from its node. All others are withheld,
// because the node's environment may hold secrets.
var baseNames = []string{"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "USER", "LOGNAME", "SHELL", "TERM", "TZ",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}

// BaseEnv returns those of a node's variables, as "K=V", that what it starts may have.
func BaseEnv(environ []string) map[string]string { return Shell{Environ: environ}.base() }

// List returns variables as "K=V", sorted.
func List(env map[string]string) []string { return list(env) }

// config is the adapterConfig of a process.
type config struct {
	Command string                `json:"command"`
	Args    []string              `json:"args"`
	Dir     string                `json:"cwd"`
	Env     map[string]live.Value `json:"env"`
	Timeout *float64              `json:"timeoutSec"`
	Grace   *float64              `json:"graceSec"`
	holding
}

// Settings returns a zero value of what adapterConfig is decoded into.
func Settings() any { return config{} }

func (c config) timeout() (d time.Duration, source string) {
	if c.Timeout == nil || *c.Timeout < 0 {
		return DefaultTimeout, "default"
	}
	if *c.Timeout == 0 {
		return MaxTimeout, "config"
	}
	return min(seconds(*c.Timeout), MaxTimeout), "config"
}

func (c config) grace() time.Duration {
	if c.Grace == nil || *c.Grace < 0 {
		return DefaultGrace
	}
	return min(seconds(*c.Grace), MaxGrace)
}

func seconds(s float64) time.Duration {
	return time.Duration(min(s, MaxTimeout.Seconds()) * float64(time.Second))
}

// environment returns the variables of a run, and those of their values that are secret. The
// runtime's variables override those of the agent's configuration.
func (a *Adapter) environment(inv company.Invocation, c config, token, home, scratch string) (env map[string]string,
	secrets []string) {
	env = map[string]string{}
	for _, kv := range a.cfg.Environ {
		if k, v, ok := strings.Cut(kv, "="); ok && slices.Contains(baseNames, k) {
			env[k] = v
		}
	}
	for k, v := range c.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.HasPrefix(k, "PAPERCLIP_") {
			continue
		}
		env[k] = strings.ReplaceAll(string(v), "\x00", "")
		if sensitive(k) {
			secrets = append(secrets, env[k])
		}
	}
	r := inv.Run
	maps.Copy(env, map[string]string{
		"PAPERCLIP_AGENT_ID": r.Agent, "PAPERCLIP_COMPANY_ID": string(r.Company), "PAPERCLIP_RUN_ID": r.ID,
		"PAPERCLIP_API_KEY": token, "PAPERCLIP_API_URL": a.cfg.APIURL, "PAPERCLIP_RUNTIME_API_URL": a.cfg.APIURL,
		"PAPERCLIP_LISTEN_HOST": a.cfg.ListenHost, "PAPERCLIP_LISTEN_PORT": a.cfg.ListenPort,
		"PAPERCLIP_TMPDIR": scratch, "PAPERCLIP_SCRATCH_DIR": scratch, "PAPERCLIP_RUN_SCRATCH_DIR": scratch,
		"PAPERCLIP_TASK_SCRATCH_DIR": scratch, "TMPDIR": scratch, "TMP": scratch, "TEMP": scratch,
		// This adapter offers no connection tools; the variables are set because scripts test
		// them.
		"PAPERCLIP_RUNTIME_TOOLS_AVAILABLE": "", "PAPERCLIP_RUNTIME_TOOLS_MCP_URL": "", "PAPERCLIP_RUNTIME_TOOLS_TOKEN": "",
		"PAPERCLIP_RUNTIME_TOOLS_EXPIRES_AT": "", "PAPERCLIP_RUNTIME_TOOLS_GUIDANCE": "",
		"PAPERCLIP_RUNTIME_TOOLS_CONNECTIONS_SEARCH_URL": "", "PAPERCLIP_RUNTIME_TOOLS_CONNECTION_REQUEST_URL": "",
		"PAPERCLIP_GITHUB_AUTH_MODE": "none", "PAPERCLIP_GIT_METADATA_ROOTS": "[]",
		"PAPERCLIP_RUNNER_NETWORK_ACCESS": "enabled",
		"PAPERCLIP_RUNNER_NETWORK_ROOTS":  `["/etc/resolv.conf","/etc/hosts","/etc/nsswitch.conf","/etc/ssl/certs"]`,
		"PAPERCLIP_WAKE_REASON":           r.Context.WakeReason,
		"PAPERCLIP_WAKE_PAYLOAD_JSON":     string(inv.WakeWithMemories()),
		"PAPERCLIP_WORKSPACE_CWD":         home, "PAPERCLIP_WORKSPACE_SOURCE": "agent_home", "AGENT_HOME": home,
	})
	for k, v := range map[string]string{
		"PAPERCLIP_TASK_ID": r.Context.TaskID, "PAPERCLIP_WAKE_COMMENT_ID": r.Context.CommentID,
		"PAPERCLIP_APPROVAL_ID": r.Context.ApprovalID, "PAPERCLIP_APPROVAL_STATUS": r.Context.ApprovalStatus,
		"PAPERCLIP_LINKED_ISSUE_IDS": cmp.Or(strings.Join(r.Context.LinkedIssueIDs, ","), r.Context.IssueID),
	} {
		if v != "" {
			env[k] = v
		}
	}
	if f := inv.Folder; f != nil {
		setFolder(env, f)
	}
	return env, append(append(secrets, inv.Secrets...), token)
}

// setFolder sets the variables for the run's workspace.
func setFolder(env map[string]string, f *entity.RunFolder) {
	env["PAPERCLIP_WORKSPACE_CWD"], env["PAPERCLIP_WORKSPACE_SOURCE"] = f.Dir, f.Source
	env["PAPERCLIP_WORKSPACE_STRATEGY"], env["PAPERCLIP_WORKSPACE_ID"] = f.Strategy, f.ProjectWorkspace
	for k, v := range map[string]string{"REPO_URL": f.RepoURL, "REPO_REF": f.BaseRef, "BRANCH": f.Branch,
		"WORKTREE_PATH": f.Worktree} {
		if v != "" {
			env["PAPERCLIP_WORKSPACE_"+k] = v
		}
	}
	list, err := json.Marshal([]map[string]string{{"workspaceId": f.ProjectWorkspace, "executionWorkspaceId": f.ID,
		"cwd": f.Dir, "repoUrl": f.RepoURL, "repoRef": f.BaseRef}})
	if err == nil { // strings always encode
		env["PAPERCLIP_WORKSPACES_JSON"] = string(list)
	}
}

// shown returns the environment for the run's events: the runtime's variables without secrets,
// and only the names of configured ones.
func shown(env map[string]string, c config) map[string]string {
	out := map[string]string{}
	for k, v := range env {
		_, configured := c.Env[k]
		runtime := strings.HasPrefix(k, "PAPERCLIP_")
		switch {
		case k == "HOME" || k == "AGENT_HOME" || runtime || strings.HasPrefix(k, "TMP") || k == "TEMP":
			if runtime && (sensitive(k) || k == "PAPERCLIP_API_KEY") || configured && !runtime {
				v = Redacted
			}
			if k != "PAPERCLIP_WAKE_PAYLOAD_JSON" { // it is in the run's context
				out[k] = v
			}
		case configured:
			out[k] = Redacted
		}
	}
	return out
}

// lookPath finds a program in the PATH of its run.
func lookPath(command, dir, path string) (string, bool) {
	if strings.Contains(command, "/") {
		if !filepath.IsAbs(command) {
			command = filepath.Join(dir, command)
		}
		return command, executable(command)
	}
	for _, d := range filepath.SplitList(path) {
		if p := filepath.Join(d, command); filepath.IsAbs(p) && executable(p) {
			return p, true
		}
	}
	return "", false
}
