package people

import (
	"context"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/selvage-mesh/selvage/adapter/webcall"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

// resolveTimeout bounds a test of whether an address answers.
const resolveTimeout = 5 * time.Second

// resolveRate bounds how often the holder of an invite may have this node test an
// address.
var resolveRate = api.Rate{Burst: 10, Every: time.Minute}

// A resolution says whether this node can reach an address.
type resolution struct {
	Invite    string  `json:"inviteId"`
	Path      string  `json:"testResolutionPath"`
	URL       string  `json:"requestedUrl"`
	TimeoutMS int64   `json:"timeoutMs"`
	Status    string  `json:"status"` // reachable, timeout or unreachable
	Method    string  `json:"method"`
	Duration  int64   `json:"durationMs"`
	HTTP      *int    `json:"httpStatus"`
	Message   *string `json:"message"`
}

// A boardClaim is the code by which the first administrator claims the instance.
type boardClaim struct {
	Status         string `json:"status"` // available or claimed
	RequiresSignIn bool   `json:"requiresSignIn"`
	ClaimedBy      any    `json:"claimedByUser"` // always null: not disclosed
}

// An invitePrompt is an invite for an OpenClaw agent, with a prompt to give it.
type invitePrompt struct {
	inviteRow
	Prompt string `json:"prompt"`
}

type promptBody struct {
	Message api.Opt[string] `json:"agentMessage" maxLength:"4000"`
}

func InviteHelpRoutes() []api.Route {
	const tag, by, claim = "members", "/api/invites/{token}", "/api/board-claim/{token}"
	return []api.Route{
		{Method: "GET", Path: by + "/logo", Tag: tag, Summary: "Read the logo of the company that invites", Who: api.Public,
			Media: []string{"*/*"}, Also: []int{206, 304}, NoTool: true, Handle: inviteLogo},
		{Method: "GET", Path: by + "/test-resolution", Tag: tag,
			Summary: "Tell whether this node reaches an address at which an agent would be called", Who: api.Public,
			Out: resolution{}, NoTool: true,
			Query: []api.Param{{Name: "url", Doc: "http or https, not of a private network"}}, Handle: testResolution},
		{Method: "POST", Path: "/api/companies/{companyId}/openclaw/invite-prompt", Limited: true, Tag: tag,
			Summary: "Invite an agent of OpenClaw; the token is shown once", Who: api.Board, In: promptBody{},
			Out: invitePrompt{}, Status: 201, NoTool: true, Handle: promptOpenClaw},
		{Method: "GET", Path: claim, Tag: "auth", Summary: "Tell whether the instance can be claimed with a code",
			Who: api.Public, Out: boardClaim{}, NoTool: true, Handle: readBoardClaim},
		{Method: "POST", Path: claim + "/claim", Limited: true, Tag: "auth",
			Summary: "Become the first administrator of the instance, with its code", Who: api.Board, Out: claimed{},
			NoTool: true, Handle: claimBoard},
	}
}

func inviteLogo(rc *api.Request) (api.Response, error) {
	var asset file.Asset
	var ref company.BlobRef
	err := rc.ViewBySecret(func(tx *ledger.Tx) error {
		_, row, err := api.InviteIn(tx, rc)
		if err != nil {
			return err
		}
		a, ok := file.AssetByID(tx, string(row.LogoAsset))
		if !ok || a.Company != row.ID {
			return api.NotFound("Invite logo not found")
		}
		asset = a
		ref, _ = company.BlobOf(tx, a.Company, a.SHA256)
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	return api.ServeFile(rc, asset, ref, false)
}

// testResolution sends a HEAD request to an address and does not show the answer. It
// refuses addresses of private networks, as for runs.
func testResolution(rc *api.Request) (api.Response, error) {
	u, err := url.Parse(rc.Query("url"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		len(rc.Query("url")) > 2000 {
		return api.Response{}, api.Invalid("Invalid url: expected an http or https address")
	}
	out := resolution{Path: "/api/invites/" + rc.Path("token") + "/test-resolution", URL: u.String(),
		TimeoutMS: resolveTimeout.Milliseconds(), Method: http.MethodHead, Status: "reachable"}
	if err := rc.ViewBySecret(func(tx *ledger.Tx) error {
		i, _, err := api.InviteIn(tx, rc)
		out.Invite = i.ID
		return err
	}); err != nil {
		return api.Response{}, err
	}
	if err := rc.Limited("resolution", resolveRate, out.Invite); err != nil {
		return api.Response{}, err
	}
	ctx, cancel := context.WithTimeout(rc.Context(), resolveTimeout)
	defer cancel()
	dialer := &net.Dialer{Control: webcall.Guard(nil)}
	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, u.String(), nil)
	if err != nil {
		return api.Response{}, api.Invalid("Invalid url: expected an http or https address")
	}
	began := time.Now()
	res, err := client.Do(req)
	out.Duration = time.Since(began).Milliseconds()
	switch {
	case errors.Is(err, webcall.ErrPrivate):
		return api.Response{}, api.Invalid("url cannot target private or reserved network addresses")
	case errors.Is(err, context.DeadlineExceeded):
		out.Status, out.Message = "timeout", new("No answer in time")
	case err != nil:
		out.Status, out.Message = "unreachable", new("The address does not answer")
	default:
		res.Body.Close()
		out.HTTP = &res.StatusCode
	}
	return api.OK(out), nil
}

func promptOpenClaw(rc *api.Request) (api.Response, error) {
	in, err := api.Body[promptBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	row, err := invite(rc, newInvite{Joins: string(people.JoinAgent), Message: in.Message})
	if err != nil {
		return api.Response{}, err
	}
	return api.OK(invitePrompt{row, "You are invited to work for the company " + api.OneLine(row.CompanyName) + ". Read " +
		row.OnboardingURL +
		" and follow it: ask to join with requestType agent and adapterType openclaw_gateway, wait until a person lets " +
		"you in, and fetch your key once."}), nil
}

// claimable reports whether a code is this node's claim code.
func claimable(rc *api.Request) bool {
	code := rc.Server.Cfg.ClaimCode
	return code != "" && subtle.ConstantTimeCompare([]byte(rc.Path("token")), []byte(code)) == 1
}

func readBoardClaim(rc *api.Request) (api.Response, error) {
	if err := rc.Limited("keys", api.KeyRate); err != nil {
		return api.Response{}, err
	}
	if !claimable(rc) {
		return api.Response{}, api.NotFound("Board claim challenge not found")
	}
	out := boardClaim{Status: "available", RequiresSignIn: rc.Authenticate() != nil || !rc.IsBoard()}
	err := rc.View(func(tx *ledger.Tx) error {
		if people.Claimed(tx) {
			out.Status = "claimed"
		}
		return nil
	})
	return api.OK(out), err
}

func claimBoard(rc *api.Request) (api.Response, error) {
	if !claimable(rc) {
		return api.Response{}, api.NotFound("Board claim challenge not found")
	}
	u, err := api.Do[people.User](rc, people.KindUserClaim, "", people.ClaimInstance{})
	return api.OK(claimed{true, u.ID}), err
}
