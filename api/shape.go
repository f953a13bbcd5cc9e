package api

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/selvage-mesh/selvage/adapter"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// Shapes of bodies and answers that many routes share.

// IsImage reports whether bytes begin like an image of an accepted type.
func IsImage(data []byte, media string) bool {
	if !slices.Contains(ImageTypes, media) {
		return false
	}
	if media == "image/svg+xml" {
		return isSVG(bytes.NewReader(data))
	}
	return http.DetectContentType(data[:min(len(data), 512)]) == media
}

func TooManyBytes(what string, limit int64) string {
	return ledger.Refuse(ledger.TooLarge, nil, "%s exceeds %d bytes", what, limit).Error()
}

// HashOf returns the stored form of a token.
func HashOf(token string) string {
	hash := sha256.Sum256([]byte(token))
	return hex.EncodeToString(hash[:])
}

// Okay is the answer of a deletion.
type Okay struct {
	OK bool `json:"ok"`
}

// CentsOf returns whole cents as money, nil for nil.
func CentsOf(cents *int64) *core.Money {
	if cents == nil {
		return nil
	}
	return new(core.Cents(*cents))
}

// RawJSON returns encoded JSON for an answer.
func RawJSON(b []byte) json.RawMessage {
	if len(b) == 0 {
		return json.RawMessage("null")
	}
	return b
}

// CheckedPolicy validates an execution policy and gives stages without an ID one.
func CheckedPolicy(b json.RawMessage) (json.RawMessage, error) {
	if len(b) == 0 || string(b) == "null" {
		return b, nil
	}
	var p policyBody
	if err := decodeAt(b, &p, "executionPolicy"); err != nil {
		return nil, err
	}
	var all map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	stages, _ := all["stages"].([]any)
	if len(stages) == 0 {
		return b, nil
	}
	for n := range stages {
		if s, ok := stages[n].(map[string]any); ok && p.Stages[n].ID == "" {
			s["id"] = NewID()
		}
	}
	return json.Marshal(all)
}

func Optional[T ~string](s T) *string {
	if s == "" {
		return nil
	}
	t := string(s)
	return &t
}

// OwnSlug returns a unique slug for a row whose name has no letter or digit for one, as in
// other scripts.
func OwnSlug(what, id string) string { return what + "-" + id[len(id)-12:] }

// Given returns a pointer to v, nil when it is empty.
func Given[T ~string](v string) *T {
	if v == "" {
		return nil
	}
	return new(T(v))
}

// MoneyOf returns an amount of USD, at most the largest allowance, truncated to micro-cents.
func MoneyOf(usd float64) core.Money {
	return core.Money(min(usd*100*float64(core.Cent), float64(money.MaxAllowance)))
}

// BodyID returns an ID of a body in lower case, like in rows.
func BodyID(o Opt[string]) string { return strings.ToLower(o.Or("")) }

func BodyIDs(list []string) []string {
	out := make([]string, len(list))
	for n, s := range list {
		out[n] = strings.ToLower(s)
	}
	return out
}

// RawBounds refuses raw JSON that is too long to be stored with an issue.
func RawBounds(values ...json.RawMessage) error {
	for _, v := range values {
		if len(v) > entity.MaxDescriptor {
			return ledger.Refuse(ledger.TooLarge, nil, "An object of an issue is longer than %d bytes", entity.MaxDescriptor)
		}
	}
	return nil
}

// TextOf returns nil for an absent member and "" for null.
func TextOf(o Opt[string]) *string {
	if !o.Set {
		return nil
	}
	return new(o.Or(""))
}

func IdPointer(o Opt[string]) *string {
	if !o.Set {
		return nil
	}
	return new(BodyID(o))
}

func RawOf(o Opt[json.RawMessage]) json.RawMessage {
	if !o.Set {
		return nil
	}
	return o.Or(json.RawMessage("null"))
}

func CutText(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// OneLine replaces white space in a name by single spaces.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// CheckWorkspaceSettings validates an issue's workspace settings, at a path in the body.
func CheckWorkspaceSettings(b json.RawMessage, at ...any) error {
	return DecodeMember(b, &workspaceSettingsBody{}, append(at[:len(at):len(at)], "executionWorkspaceSettings")...)
}

// ShowObject redacts an object that may hold secrets.
func ShowObject(b json.RawMessage) json.RawMessage {
	if len(b) == 0 {
		return json.RawMessage("null")
	}
	return conceal.RedactConfig(b)
}

func OrElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func RandomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// CheckConfigs refuses a schedule that the rules would ignore, because they treat a setting of
// the wrong type as absent, and a configuration that no run of an adapter ("" for the default)
// could decode. The configurations are at a path in the body; nil and null are valid.
func CheckConfigs(kind string, adapterConfig, runtimeConfig json.RawMessage, at ...any) error {
	var runtime map[string]json.RawMessage
	_ = json.Unmarshal(runtimeConfig, &runtime) // the rules refuse anything but an object
	beat := append(at[:len(at):len(at)], "runtimeConfig", "heartbeat")
	issues := scheduleIssues(runtime["heartbeat"], beat)
	if b := runtime["heartbeat"]; len(b) > 0 && b[0] != '{' && b[0] != 'n' {
		issues = []Issue{{Code: "invalid_type", Expected: "object", Path: beat,
			Message: "Invalid input: expected object, received " + typeName(b)}}
	}
	config := append(at[:len(at):len(at)], "adapterConfig")
	issues = append(append(issues, scheduleIssues(adapterConfig, config)...),
		AdapterIssues(kind, adapterConfig, config)...)
	var profiles map[string]struct{ AdapterConfig json.RawMessage }
	_ = json.Unmarshal(runtime["modelProfiles"], &profiles) // a malformed profile is ignored
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		issues = append(issues, AdapterIssues(kind, profiles[name].AdapterConfig,
			append(at[:len(at):len(at)], "runtimeConfig", "modelProfiles", name, "adapterConfig"))...)
	}
	if len(issues) > 0 {
		return ValidationError(issues[:min(len(issues), MaxIssues)]...)
	}
	return nil
}

// AdapterIssues returns the members of an adapterConfig that no run of the adapter could
// decode; unknown members are ignored.
func AdapterIssues(kind string, config json.RawMessage, at []any) (issues []Issue) {
	k, _ := adapter.Find(cmp.Or(kind, company.DefaultAdapter))
	for _, m := range k.Misfits(config) {
		path := at[:len(at):len(at)]
		for _, name := range m.Path {
			path = append(path, name)
		}
		issues = append(issues, Issue{Code: "invalid_type", Expected: m.Expected, Path: path,
			Message: "Invalid input: expected " + m.Expected})
	}
	return issues
}

type CatalogFile struct {
	Path   string `json:"path"`
	Kind   string `json:"kind"`
	Size   int    `json:"sizeBytes"`
	SHA256 string `json:"sha256"`
}

// A PauseHold is a hold on an issue, and whether the issue itself has it.
type PauseHold struct {
	Hold    string           `json:"holdId"`
	Root    string           `json:"rootIssueId"`
	Issue   string           `json:"issueId"`
	IsRoot  bool             `json:"isRoot"`
	Mode    string           `json:"mode"`
	Reason  core.NullText    `json:"reason"`
	Release care.HoldRelease `json:"releasePolicy"`
	Since   core.Time        `json:"createdAt"`
}

// seconds formats a wait for Retry-After, rounded up.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

const (
	BundledKey = "paperclipai/paperclip/"
	PlainText  = "text/plain; charset=utf-8"
)

// ImageTypes are the accepted images, by the media type of their first bytes.
var ImageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"}

// isSVG reports whether the first element of an XML document is svg. Serving it forbids
// scripts.
func isSVG(r io.Reader) bool {
	d := xml.NewDecoder(io.LimitReader(r, SvgHead))
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	for range 64 {
		t, err := d.Token()
		if err != nil {
			return false
		}
		if e, ok := t.(xml.StartElement); ok {
			return e.Name.Local == "svg"
		}
	}
	return false
}

// policyBody has the validated members of an execution policy; other members are stored as
// sent.
type policyBody struct {
	Mode            string       `json:"mode,omitempty" enum:"normal,auto"`
	CommentRequired *bool        `json:"commentRequired,omitempty" nullable:"false"`
	Stages          []stageBody  `json:"stages,omitempty" maxItems:"20"`
	MaxRounds       Opt[float64] `json:"maxReviewRounds" minimum:"1" maximum:"50"`
	Monitor         *monitorBody `json:"monitor,omitempty"`
}

// Check requires of each participant an ID of its kind, and of each stage a participant.
func (p policyBody) Check() (out []Issue) {
	for n, s := range p.Stages {
		if len(s.Participants) == 0 {
			out = append(out, Issue{Code: "too_small", Path: []any{"stages", n, "participants"},
				Message: "A stage needs a participant"})
		}
		for k, who := range s.Participants {
			if who.Type == "agent" && who.Agent.Or("") == "" || who.Type == "user" && who.User.Or("") == "" {
				out = append(out, Issue{Code: "custom", Path: []any{"stages", n, "participants", k},
					Message: "A participant of type " + who.Type + " needs its ID"})
			}
		}
	}
	return out
}

// workspaceSettingsBody is an issue's executionWorkspaceSettings.
type workspaceSettingsBody struct {
	Mode Opt[string] `json:"mode" enum:"inherit,shared_workspace,isolated_workspace,operator_branch,reuse_existing,agent_default"`
}

// scheduleIssues returns the invalid settings among the members of an object.
func scheduleIssues(b json.RawMessage, at []any) (issues []Issue) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(b, &members) // likewise
	for _, m := range scheduleMembers {
		v, given := members[m.name]
		if !given || string(v) == "null" {
			continue
		}
		path, kind := append(at[:len(at):len(at)], m.name), typeName(v)
		n, err := strconv.ParseInt(string(v), 10, 64)
		switch {
		case m.flag && kind != "boolean":
			issues = append(issues, Issue{Code: "invalid_type", Expected: "boolean", Path: path,
				Message: "Invalid input: expected boolean, received " + kind})
		case m.flag:
		case kind != "number":
			issues = append(issues, Issue{Code: "invalid_type", Expected: "number", Path: path,
				Message: "Invalid input: expected number, received " + kind})
		case err != nil || n > maxSafeInt:
			issues = append(issues, Issue{Code: "invalid_type", Expected: "int", Format: "safeint", Path: path,
				Message: "Invalid input: expected int, received number"})
		case n < m.minimum:
			issues = append(issues, Issue{Origin: "number", Code: "too_small", Minimum: new(float64(m.minimum)),
				Inclusive: new(true), Path: path,
				Message: "Too small: expected number to be >=" + strconv.FormatInt(m.minimum, 10)})
		}
	}
	return issues
}

// SvgHead is how far the first element of an SVG is searched, in bytes.
const SvgHead = 64 << 10

// monitorBody says when an issue's agent checks something outside again.
type monitorBody struct {
	NextCheckAt core.Time      `json:"nextCheckAt"`
	Notes       Opt[string]    `json:"notes" maxLength:"500"`
	By          string         `json:"scheduledBy,omitempty" enum:"assignee,board"`
	Kind        Opt[string]    `json:"kind" enum:"external_service"`
	Service     Opt[string]    `json:"serviceName" minLength:"1" maxLength:"120"`
	Ref         Opt[string]    `json:"externalRef" minLength:"1" maxLength:"500"`
	TimeoutAt   Opt[core.Time] `json:"timeoutAt"`
	MaxAttempts Opt[int]       `json:"maxAttempts" minimum:"1" maximum:"100"`
	Recovery    Opt[string]    `json:"recoveryPolicy" enum:"wake_owner,create_recovery_issue,escalate_to_board"`
}

type stageBody struct {
	ID           string            `json:"id,omitempty" format:"uuid"`
	Type         string            `json:"type" enum:"review,approval"`
	Needed       *float64          `json:"approvalsNeeded,omitempty" minimum:"1" maximum:"1" nullable:"false"`
	Participants []participantBody `json:"participants,omitempty" maxItems:"20"`
}

// scheduleMembers are the settings of an agent's schedule that the rules read: members of
// runtimeConfig.heartbeat or of adapterConfig. Counts are whole numbers; maxConcurrentRuns is
// clamped, so it may be any.
var scheduleMembers = []struct {
	name    string
	flag    bool // true or false; otherwise a count
	minimum int64
}{
	{name: "enabled", flag: true}, {name: "wakeOnDemand", flag: true}, {name: "skipTimerWhenNoActionableWork", flag: true},
	{name: "intervalSec"}, {name: "maxConcurrentRuns", minimum: -maxSafeInt}, {name: "maxDailyRuns"},
	{name: "maxDailyCostCents"}, {name: "maxFruitlessRuns"},
}

// maxSafeInt is the largest integer that every client can represent.
const maxSafeInt = 1<<53 - 1

type participantBody struct {
	ID    string      `json:"id,omitempty" format:"uuid"`
	Type  string      `json:"type" enum:"agent,user"`
	Agent Opt[string] `json:"agentId" format:"uuid"`
	User  Opt[string] `json:"userId" minLength:"1" maxLength:"200"`
}

type remoteNote struct {
	Path *string `json:"path"`
}

type commandNote struct {
	Command *string `json:"command"`
}

// A FolderNote says in which folder a run works.
type FolderNote struct {
	Kind      string        `json:"kind,omitempty"`
	LocalPath *string       `json:"localPath,omitempty"`
	Path      *string       `json:"path,omitempty"`
	Source    string        `json:"source,omitempty"`
	RepoRef   *string       `json:"repoRef"`
	RepoURL   *string       `json:"repoUrl"`
	Strategy  string        `json:"strategy"`
	Project   core.NullText `json:"projectId"`
	Branch    *string       `json:"branchName"`
	Worktree  *string       `json:"worktreePath"`
	Workspace core.NullText `json:"projectWorkspaceId"`
}

type RealizationNote struct {
	Mode          string        `json:"mode"`
	Local         FolderNote    `json:"local"`
	Remote        remoteNote    `json:"remote"`
	Lease         string        `json:"leaseId"`
	Rebuild       RebuildNote   `json:"rebuild"`
	Summary       string        `json:"summary"`
	Version       int           `json:"version"`
	Provider      string        `json:"provider"`
	Bootstrap     commandNote   `json:"bootstrap"`
	Additional    []struct{}    `json:"additional"`
	Aliases       []struct{}    `json:"pathAliases"`
	Environment   string        `json:"environmentId"`
	ProviderLease core.NullText `json:"providerLeaseId"`
	Root          string        `json:"authoritativeRoot"`
	Outbound      []struct{}    `json:"outboundRestorePaths"`
}

type RebuildNote struct {
	Mode               string          `json:"mode"`
	RepoRef            *string         `json:"repoRef"`
	RepoURL            *string         `json:"repoUrl"`
	Metadata           RebuildMetadata `json:"metadata"`
	LocalPath          string          `json:"localPath"`
	RemotePath         *string         `json:"remotePath"`
	ProviderLease      core.NullText   `json:"providerLeaseId"`
	ExecutionWorkspace core.NullText   `json:"executionWorkspaceId"`
}

type RebuildMetadata struct {
	Source   FolderNote     `json:"source"`
	Provider string         `json:"provider"`
	Overlay  RuntimeOverlay `json:"runtimeOverlay"`
	More     struct{}       `json:"providerMetadata"`
	Driver   string         `json:"environmentDriver"`
}

type RuntimeOverlay struct {
	Cleanup          *string `json:"cleanupCommand"`
	Teardown         *string `json:"teardownCommand"`
	Provision        *string `json:"provisionCommand"`
	Workspace        *string `json:"workspaceRuntime"`
	RuntimeProvision *string `json:"runtimeProvisionCommand"`
}
