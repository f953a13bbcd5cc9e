package people

import (
	"encoding/hex"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	challengeTokenPrefix = "pcp_cli_auth_"
	// pollEvery is how often a program polls its challenge, in milliseconds.
	pollEvery = 1000
)

// newBoardKey is the body that makes a board key.
type newBoardKey struct {
	Name      string                    `json:"name,omitempty" minLength:"1" maxLength:"120" default:"API key"`
	ExpiresAt api.Opt[core.Time]        `json:"expiresAt"`
	CompanyID api.Opt[ledger.CompanyID] `json:"requestedCompanyId" format:"uuid"`
}

// A boardKeyRow is a board key as answers show it. Only the answer that created it has
// the token.
type boardKeyRow struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Token      string    `json:"token,omitempty"`
	CreatedAt  core.Time `json:"createdAt"`
	LastUsedAt core.Time `json:"lastUsedAt"` // always null: reads are not recorded
	RevokedAt  core.Time `json:"revokedAt"`
	ExpiresAt  core.Time `json:"expiresAt"`
}

func showBoardKey(k people.BoardKey, token string) boardKeyRow {
	return boardKeyRow{ID: k.ID, Name: k.Name, Token: token, CreatedAt: k.CreatedAt, RevokedAt: k.RevokedAt,
		ExpiresAt: k.ExpiresAt}
}

func BoardKeyRoutes() []api.Route {
	const tag, all, one = "auth", "/api/board-api-keys", "/api/cli-auth/challenges/{id}"
	return []api.Route{
		api.Read(api.Route{Path: all, Tag: tag, Summary: "List one's board keys", Who: api.Board}, listBoardKeys),
		{Method: "POST", Path: all, Limited: true, Tag: tag, Summary: "Make a board key; its token is shown once",
			Who: api.Board, In: newBoardKey{}, Out: boardKeyRow{}, Status: 201, NoTool: true, Handle: createBoardKey},
		{Method: "DELETE", Path: all + "/{keyId}", Limited: true, Tag: tag, Summary: "Revoke a board key", Who: api.Board,
			Out: api.Okay{}, NoTool: true, Handle: revokeBoardKey},
		{Method: "POST", Path: "/api/cli-auth/challenges", Limited: true, Tag: tag,
			Summary: "Ask a person to let a program act as them", Who: api.Public, In: newChallenge{}, Out: madeChallenge{},
			Status: 201, NoTool: true, Handle: openChallenge},
		{Method: "GET", Path: one, Tag: tag, Summary: "Tell what became of a challenge", Who: api.Public, Out: challengeRow{},
			NoTool: true, Handle: pollChallenge, Query: []api.Param{{Name: "token"}}},
		{Method: "POST", Path: one + "/approve", Limited: true, Tag: tag, Summary: "Let a program act as oneself",
			Who: api.Board, In: challengeToken{}, Out: challengeApproval{}, NoTool: true, Handle: approveChallenge},
		{Method: "POST", Path: one + "/cancel", Limited: true, Tag: tag, Summary: "Withdraw a challenge", Who: api.Public,
			In: challengeToken{}, Out: challengeCancelled{}, NoTool: true, Handle: cancelChallenge},
		{Method: "GET", Path: "/api/cli-auth/me", Tag: tag, Summary: "Tell who the board is and which companies it may see",
			Who: api.Board, Out: boardAccess{}, Handle: boardMe},
		{Method: "POST", Path: "/api/cli-auth/revoke-current", Limited: true, Tag: tag,
			Summary: "Revoke the board key that the request shows", Who: api.Board, Out: keyRevoked{}, NoTool: true,
			Handle: revokeCurrent},
	}
}

func listBoardKeys(tx *ledger.Tx, rc *api.Request) ([]boardKeyRow, error) {
	out := []boardKeyRow{}
	for _, k := range people.BoardKeysOf(tx, rc.Actor.ID) {
		if k.RevokedAt == 0 {
			out = append(out, showBoardKey(k, ""))
		}
	}
	return out, nil
}

func createBoardKey(rc *api.Request) (api.Response, error) {
	in, err := api.Body[newBoardKey](rc)
	if err != nil {
		return api.Response{}, err
	}
	if in.CompanyID.Set && !in.CompanyID.Null {
		if err := rc.View(func(tx *ledger.Tx) error {
			if !rc.Enters(tx, ledger.CompanyID(strings.ToLower(string(in.CompanyID.Value)))) {
				return api.ErrNoAccess
			}
			return nil
		}); err != nil {
			return api.Response{}, err
		}
	}
	token := api.BoardTokenPrefix + hex.EncodeToString(rc.Secret("board-key", api.TokenBytes))
	p := people.CreateBoardKey{ID: api.NewID(), Name: in.Name, Hash: api.HashOf(token)}
	if in.ExpiresAt.Set {
		p.ExpiresAt = new(in.ExpiresAt.Value)
	}
	k, err := api.Do[people.BoardKey](rc, people.KindBoardKeyCreate, "", p)
	if err != nil {
		return api.Response{}, err
	}
	if k.Hash != p.Hash {
		return api.Response{}, api.Conflict("The key was made by an earlier request; its token can not be shown again",
			map[string]string{"keyId": k.ID})
	}
	rc.SetHeader("Cache-Control", "no-store")
	return api.OK(showBoardKey(k, token)), nil
}

func revokeBoardKey(rc *api.Request) (api.Response, error) {
	_, err := rc.Submit(people.KindBoardKeyRevoke, "", people.RevokeBoardKey{ID: strings.ToLower(rc.Path("keyId"))})
	return api.OK(api.Okay{OK: true}), err
}

// keyRevoked is the answer when a board key has ended.
type keyRevoked struct {
	Revoked bool   `json:"revoked"`
	KeyID   string `json:"keyId"`
}

func revokeCurrent(rc *api.Request) (api.Response, error) {
	if rc.Credential.Kind != "board_key" {
		return api.Response{}, api.Forbidden("Current board API key is required")
	}
	id := rc.KeyID
	_, err := rc.Submit(people.KindBoardKeyRevoke, "", people.RevokeBoardKey{ID: id})
	return api.OK(keyRevoked{true, id}), err
}

// newChallenge is the body by which a program asks to act as a person.
type newChallenge struct {
	Command   string                    `json:"command" minLength:"1" maxLength:"240"`
	Client    api.Opt[string]           `json:"clientName" maxLength:"120"`
	Access    string                    `json:"requestedAccess,omitempty" enum:"board,instance_admin_required" default:"board"`
	CompanyID api.Opt[ledger.CompanyID] `json:"requestedCompanyId" format:"uuid"`
}

// challengeToken is the body that decides a challenge.
type challengeToken struct {
	Token string `json:"token" minLength:"16" maxLength:"256"`
}

type madeChallenge struct {
	ID           string    `json:"id"`
	Token        string    `json:"token"`
	BoardToken   string    `json:"boardApiToken"` // valid once somebody has approved
	ApprovalPath string    `json:"approvalPath"`
	ApprovalURL  string    `json:"approvalUrl"`
	PollPath     string    `json:"pollPath"`
	ExpiresAt    core.Time `json:"expiresAt"`
	PollEvery    int       `json:"suggestedPollIntervalMs"`
}

type challengeRow struct {
	ID             string                      `json:"id"`
	Status         string                      `json:"status"` // pending, approved, cancelled or expired
	Command        string                      `json:"command"`
	Client         core.NullText               `json:"clientName"`
	Access         string                      `json:"requestedAccess"`
	Company        core.Null[ledger.CompanyID] `json:"requestedCompanyId"`
	CompanyName    core.NullText               `json:"requestedCompanyName"`
	ApprovedAt     core.Time                   `json:"approvedAt"`
	CancelledAt    core.Time                   `json:"cancelledAt"`
	ExpiresAt      core.Time                   `json:"expiresAt"`
	ApprovedBy     *boardName                  `json:"approvedByUser"`
	RequiresSignIn bool                        `json:"requiresSignIn"`
	CanApprove     bool                        `json:"canApprove"`
	CurrentUser    core.NullText               `json:"currentUserId"`
}

type challengeApproval struct {
	Approved  bool          `json:"approved"`
	Status    string        `json:"status"`
	User      core.NullText `json:"userId"`
	Key       core.NullText `json:"keyId"`
	ExpiresAt core.Time     `json:"expiresAt"`
}

func openChallenge(rc *api.Request) (api.Response, error) {
	in, err := api.Body[newChallenge](rc)
	if err != nil {
		return api.Response{}, err
	}
	rc.OfNode("cli-auth")
	token := challengeTokenPrefix + hex.EncodeToString(rc.Secret("cli-auth", api.TokenBytes))
	key := api.BoardTokenPrefix + hex.EncodeToString(rc.Secret("cli-auth-key", api.TokenBytes))
	h, err := api.Do[people.Challenge](rc, people.KindCliAuthOpen, "", people.OpenChallenge{ID: api.NewID(),
		Hash: api.HashOf(token), KeyHash: api.HashOf(key), Command: in.Command,
		Client: in.Client.Or(""), Access: in.Access, Company: ledger.CompanyID(strings.ToLower(string(in.CompanyID.Or(""))))})
	if err != nil {
		return api.Response{}, err
	}
	if h.Hash != api.HashOf(token) {
		return api.Response{}, api.Conflict("The challenge was made by an earlier request; its token can not be shown "+
			"again", nil)
	}
	path := "/cli-auth/" + h.ID + "?token=" + token
	rc.SetHeader("Cache-Control", "no-store")
	return api.OK(madeChallenge{h.ID, token, key, path, rc.Base() + path, "/cli-auth/challenges/" + h.ID, h.ExpiresAt,
		pollEvery}), nil
}

func pollChallenge(rc *api.Request) (api.Response, error) {
	someone := rc.Authenticate() == nil && rc.IsBoard()
	var out challengeRow
	err := rc.ViewBySecret(func(tx *ledger.Tx) error {
		h, ok := people.ChallengeByID(tx, strings.ToLower(rc.Path("id")), api.HashOf(rc.Query("token")))
		if !ok {
			return api.ErrNoChallenge()
		}
		now := core.TimeOf(rc.Now())
		out = challengeRow{ID: h.ID, Status: h.Status(now), Command: h.Command, Client: h.Client, Access: h.Access,
			Company:    h.Company,
			ApprovedAt: h.ApprovedAt, CancelledAt: h.CancelledAt, ExpiresAt: h.ExpiresAt, RequiresSignIn: !someone}
		if row, ok := entity.CompanyOf(tx, ledger.CompanyID(h.Company)); ok {
			out.CompanyName = core.NullText(row.Name)
		}
		if p, ok := people.PersonOf(tx, string(h.ApprovedBy)); ok {
			out.ApprovedBy = &boardName{p.ID, p.Name, p.Email}
		}
		if someone {
			out.CurrentUser = core.NullText(rc.Actor.ID)
			out.CanApprove = out.Status == "pending" && h.CanApprove(tx, rc.Actor.ID) == nil
		}
		return nil
	})
	return api.OK(out), err
}

func approveChallenge(rc *api.Request) (api.Response, error) {
	in, err := api.Body[challengeToken](rc)
	if err != nil {
		return api.Response{}, err
	}
	h, err := api.Do[people.Challenge](rc, people.KindCliAuthApprove, "",
		people.DecideChallenge{ID: strings.ToLower(rc.Path("id")), Hash: api.HashOf(in.Token), Key: api.NewID()})
	if err != nil {
		return api.Response{}, err
	}
	return api.OK(challengeApproval{h.ApprovedAt != 0 && h.CancelledAt == 0, h.Status(core.TimeOf(rc.Now())), h.ApprovedBy,
		h.Key, h.ExpiresAt}), nil
}

// challengeCancelled says whether a challenge was withdrawn.
type challengeCancelled struct {
	Status    string `json:"status"`
	Cancelled bool   `json:"cancelled"`
}

func cancelChallenge(rc *api.Request) (api.Response, error) {
	in, err := api.Body[challengeToken](rc)
	if err != nil {
		return api.Response{}, err
	}
	rc.OfNode("cli-auth")
	h, err := api.Do[people.Challenge](rc, people.KindCliAuthCancel, "",
		people.DecideChallenge{ID: strings.ToLower(rc.Path("id")), Hash: api.HashOf(in.Token)})
	if err != nil {
		return api.Response{}, err
	}
	return api.OK(challengeCancelled{h.Status(core.TimeOf(rc.Now())), h.CancelledAt != 0}), nil
}

// boardMe answers who the board is: the person behind the credential, and the companies
// that they may enter.
func boardMe(rc *api.Request) (api.Response, error) {
	out := boardAccess{UserID: rc.Actor.ID, Companies: []ledger.CompanyID{}, Memberships: []membership{},
		Source: rc.Credential.Kind}
	switch rc.Credential.Kind {
	case "local":
		out.Source = "local_implicit"
	case "board_key":
		out.KeyID = &rc.KeyID
	}
	err := rc.View(func(tx *ledger.Tx) error {
		p, _ := people.PersonOf(tx, rc.Actor.ID)
		out.User, out.Admin = boardName{p.ID, p.Name, p.Email}, rc.Trusted() || people.IsAdmin(tx, rc.Actor.ID)
		for _, m := range people.MembershipsOf(tx, rc.Actor.ID) {
			out.Companies = append(out.Companies, m.Company)
			out.Memberships = append(out.Memberships, membership{m.Company, core.NullText(m.Role), string(m.Status)})
		}
		return nil
	})
	return api.OK(out), err
}
