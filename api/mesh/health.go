package mesh

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/ledger"
)

// HealthRoutes say whether the process is alive and whether the node can serve, and
// answer the first requests of Paperclip's clients.
func HealthRoutes() []api.Route {
	return []api.Route{
		{Method: "GET", Path: "/api/health", Tag: "system", Summary: "Tell that the server runs", Who: api.Public,
			Out: api.Either{health{}, publicHealth{}}, Handle: tellHealth},
		{Method: "GET", Path: "/healthz", Tag: "system", Summary: "Tell that the process lives", Who: api.Public,
			Out:    liveness{},
			Handle: func(*api.Request) (api.Response, error) { return api.OK(liveness{"ok"}), nil }},
		{Method: "GET", Path: "/readyz", Tag: "system", Summary: "Tell whether this node can serve", Who: api.Public,
			Out: readiness{}, Also: []int{503}, Handle: tellReady},
		{Method: "GET", Path: "/openapi.json", Tag: "system", Summary: "Describe this API", Who: api.Public,
			Out: map[string]any{}, Handle: tellAPI},
		{Method: "GET", Path: "/api/openapi.json", Tag: "system", Summary: "Describe this API", Who: api.Public,
			Out: map[string]any{}, Handle: tellAPI},
	}
}

type liveness struct {
	Status string `json:"status"`
}

type health struct {
	Status             string          `json:"status"`
	Version            string          `json:"version"`
	ServerVersion      string          `json:"serverVersion"`
	Commit             *string         `json:"commit"`
	DeploymentMode     string          `json:"deploymentMode"`
	DeploymentExposure string          `json:"deploymentExposure"`
	LocalAILogin       bool            `json:"localAiLoginSupported"`
	AuthReady          bool            `json:"authReady"`
	BootstrapStatus    string          `json:"bootstrapStatus"`
	BootstrapInvite    bool            `json:"bootstrapInviteActive"`
	Features           healthFeatures  `json:"features"`
	ServerInfo         healthServer    `json:"serverInfo"`
	StartupRecovery    startupRecovery `json:"startupRecovery"`
	NativeRecovery     struct{}        `json:"nativeRecovery"`
	Mesh               healthMesh      `json:"mesh"`
}

type healthFeatures struct {
	CompanyDeletion bool `json:"companyDeletionEnabled"`
}

type healthServer struct {
	ProcessStartedAt isoTime   `json:"processStartedAt"`
	Git              gitStatus `json:"git"`
}

type gitStatus struct {
	Available bool   `json:"available"`
	Reason    string `json:"unavailableReason"`
}

type startupRecovery struct {
	Phase     string  `json:"phase"`
	UpdatedAt isoTime `json:"updatedAt"`
}

type healthMesh struct {
	ID     string `json:"id"`
	Node   string `json:"node"`
	Leader string `json:"leader"`
	Quorum bool   `json:"quorum"`
}

// isoTime is a time in the contract's format.
type isoTime time.Time

// MarshalJSON writes UTC with milliseconds.
func (t isoTime) MarshalJSON() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, `"2006-01-02T15:04:05.000Z"`), nil
}

// publicHealth is the answer to a caller without a credential.
type publicHealth struct {
	Status             string  `json:"status"`
	DeploymentMode     string  `json:"deploymentMode"`
	DeploymentExposure string  `json:"deploymentExposure"`
	LocalAILogin       bool    `json:"localAiLoginSupported"`
	Commit             *string `json:"commit"`
	BootstrapStatus    string  `json:"bootstrapStatus"`
	BootstrapInvite    bool    `json:"bootstrapInviteActive"`
}

// tellHealth answers less to callers without a credential. An invalid credential is not
// refused, because the question is only whether the server runs.
func tellHealth(rc *api.Request) (api.Response, error) {
	s := rc.Server
	mode, bootstrap := s.Mode(), "ready"
	if mode == people.Authenticated {
		if _, err := s.Cfg.Node.View(rc.Context(), ledger.Read{Mode: ledger.ReadStale}, func(tx *ledger.Tx) error {
			if !people.Claimed(tx) {
				bootstrap = "bootstrap_pending"
			}
			return nil
		}); err != nil {
			return api.Response{}, err
		}
	}
	if !s.TrustsAll() && rc.Authenticate() != nil {
		return api.OK(publicHealth{Status: "ok", DeploymentMode: mode, DeploymentExposure: "private", LocalAILogin: true,
			BootstrapStatus: bootstrap}), nil
	}
	h := health{Status: "ok", Version: s.Cfg.Version, ServerVersion: s.Cfg.Version, DeploymentMode: mode,
		DeploymentExposure: "private", LocalAILogin: true, AuthReady: true, BootstrapStatus: bootstrap,
		Features:        healthFeatures{CompanyDeletion: true},
		ServerInfo:      healthServer{isoTime(s.Started), gitStatus{Reason: "git_unavailable"}},
		StartupRecovery: startupRecovery{"ready", isoTime(s.Started)},
		Mesh:            healthMesh{ID: string(s.Cfg.Mesh), Node: string(s.Cfg.NodeID)}}
	if s.Cfg.Standing != nil {
		st := s.Cfg.Standing()
		h.Mesh.Leader, h.Mesh.Quorum = string(st.Leader), st.Quorum
	}
	return api.OK(h), nil
}

type readiness struct {
	Status   string `json:"status"` // "ready" or "not_ready"
	State    string `json:"state,omitempty" enum:"booting,running,shutting_down,halted"`
	Phase    string `json:"phase,omitempty"` // of booting, the last one that was entered
	Reason   string `json:"reason,omitempty"`
	Warning  string `json:"warning,omitempty"`
	Height   uint64 `json:"height"`
	Applied  uint64 `json:"applied"`
	Voters   int    `json:"voters,omitempty"`
	Failover bool   `json:"failover"` // a voter may fail and the mesh goes on
}

// readyWait bounds how long a readiness probe waits for the quorum.
const readyWait = 2 * time.Second

func tellReady(rc *api.Request) (api.Response, error) {
	s := rc.Server
	out := readiness{Status: "ready"}
	if s.Cfg.Head != nil {
		out.Height, out.Applied = s.Cfg.Head()
	}
	if s.Cfg.Raft != nil {
		stats, _ := s.Cfg.Raft()
		out.Voters, out.Failover = stats.Voters, stats.Voters >= 3
		if !out.Failover {
			out.Warning = "no failover until a third node"
		}
	}
	if s.Cfg.Boot != nil {
		state, phase := s.Cfg.Boot()
		out.State, out.Phase = string(state), string(phase)
		if state != kernel.NodeRunning {
			out.Status, out.Reason = "not_ready", "this node is "+strings.ReplaceAll(out.State, "_", " ")
			rc.SetHeader("Retry-After", "1")
			return api.Reply(http.StatusServiceUnavailable, out), nil
		}
	}
	if s.Cfg.Ready == nil {
		return api.OK(out), nil
	}
	ctx, cancel := context.WithTimeout(rc.Context(), readyWait)
	defer cancel()
	if err := s.Cfg.Ready(ctx); err != nil {
		out.Status, out.Reason = "not_ready", err.Error()
		rc.SetHeader("Retry-After", "1")
		return api.Reply(http.StatusServiceUnavailable, out), nil
	}
	return api.OK(out), nil
}

func tellAPI(rc *api.Request) (api.Response, error) {
	s := rc.Server
	doc, err := s.Openapi()
	if err != nil {
		return api.Response{}, err
	}
	return api.Raw("application/json; charset=utf-8", doc), nil
}
