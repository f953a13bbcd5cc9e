package people

import (
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Authorize decides, before a command's handler runs, whether the command's credential is
// still valid, whether its company exists, and whether its actor may give such a command.
// The ledger calls it for every command, on every node, when the command is applied: what
// the API checked when it took the request may have changed since.
func Authorize(c *ledger.Context) error {
	who, err := actorOf(c)
	if err != nil {
		return err
	}
	kind, _ := company.KindOf(c.Cmd.Kind) // an unknown kind yields the zero Kind, which nobody may give
	if c.Cmd.Company != "" && !kind.Has(company.Founds) {
		row := entity.CompanyTable.Look(c.Tx, c.Cmd.Company, c.Cmd.Company)
		// A company that is being deleted still accepts the commands that delete its rows.
		if row == nil || row.Status == entity.CompanyDeleting && !kind.Has(company.WindsUp) && who != company.FromNode {
			return company.ErrNoCompany()
		}
	}
	if kind.From&who == 0 {
		return refuseKind(who)
	}
	if who == company.FromBoard && c.Cmd.Credential.Kind != "local" {
		return checkPerson(c, kind)
	}
	if who == company.FromAgent && kind.Permit != nil {
		return kind.Permit(c)
	}
	return nil
}

func refuseKind(who company.Givers) error {
	if who == company.FromAgent {
		return core.ErrBoardOnly()
	}
	return ledger.Refuse(ledger.Forbidden, nil, "The actor may not do this")
}

// actorOf checks the credential and returns which column of the matrix applies.
func actorOf(c *ledger.Context) (company.Givers, error) {
	actor, cred := c.Cmd.Actor, c.Cmd.Credential
	switch {
	case actor.Type == "user" && cred.Kind == "local":
		if SignsIn(c.Tx) {
			return 0, core.ErrBoardOnly()
		}
		return company.FromBoard, nil
	case actor.Type == "user" && cred.Kind == "session":
		if s, ok := SessionByID(c.Tx, cred.ID); !ok || s.User != actor.ID || !s.Valid(core.TimeOf(c.Now)) {
			return 0, ledger.Refuse(ledger.Unauthorized, nil, "Board authentication required")
		}
		return company.FromBoard, nil
	case actor.Type == "user" && cred.Kind == "board_key":
		if k, ok := BoardKeyByID(c.Tx, cred.ID); !ok || k.User != actor.ID || !k.Valid(core.TimeOf(c.Now)) ||
			!Speaks(c.Tx, k.User) {
			return 0, errToken()
		}
		return company.FromBoard, nil
	case actor.Type == "agent":
		return company.FromAgent, checkAgent(c)
	case (actor.Type == "node" || actor.Type == "system") && cred.Kind == "node":
		// A node may act only as itself; the ledger has checked its signature and its place
		// in the roster. The genesis command comes before there is a roster.
		if c.Mesh != "" && cred.ID != string(c.Origin) || actor.Type == "node" && actor.ID != cred.ID {
			return 0, ledger.Refuse(ledger.Unauthorized, nil, "A node can only speak for itself")
		}
		return company.FromNode, nil
	}
	return 0, ledger.Refuse(ledger.Unauthorized, nil, "The credential does not fit the actor")
}

func errToken() error {
	return ledger.Refuse(ledger.Unauthorized, nil, "Agent token did not verify; obtain fresh credentials and retry")
}

// checkAgent rejects an agent that does not exist, that acts outside its own company, whose
// key was revoked, or whose run is over.
func checkAgent(c *ledger.Context) error {
	actor, cred := c.Cmd.Actor, c.Cmd.Credential
	a := entity.AgentTable.Look(c.Tx, core.OwnerOf(c.Tx, actor.ID), actor.ID)
	if a == nil || a.Status == entity.AgentTerminated || a.Status == entity.AgentPendingApproval {
		return errToken()
	}
	if c.Cmd.Company != "" && a.Company != c.Cmd.Company {
		return ledger.Refuse(ledger.Forbidden, nil, "Agent key cannot access another company")
	}
	if run := c.Cmd.Run; run != "" && cred.Kind == "agent_key" {
		// The run's row says which agent the run belongs to.
		r := entity.RunTable.Look(c.Tx, a.Company, run)
		if r == nil || r.Agent != a.ID {
			return ledger.Refuse(ledger.Forbidden, nil, "The run is not one of this agent")
		}
		if kind, _ := company.KindOf(c.Cmd.Kind); !r.Status.Live() && !kind.Has(company.FencesItself) {
			return refuseOver(*r)
		}
	}
	switch cred.Kind {
	case "agent_key":
		k := AgentKeys.Look(c.Tx, a.Company, cred.ID)
		if k == nil || k.RevokedAt != 0 || k.Agent != a.ID {
			return errToken()
		}
	case "run":
		if r := entity.RunTable.Look(c.Tx, a.Company, cred.ID); afterRun(c.Cmd.Kind) && r != nil && r.Agent == a.ID {
			break // tool.trace records the last calls of a run after its end; its token was valid when they were made
		}
		if !entity.RunAlive(c.Tx, a.Company, cred.ID, a.ID) {
			return errToken()
		}
		if c.Cmd.Run != "" && c.Cmd.Run != cred.ID {
			err := ledger.Refuse(ledger.Unprocessable, nil, "The run of the token and the run of the request differ")
			err.(*ledger.Refusal).ErrCode = "agent_jwt_run_id_mismatch"
			return err
		}
	default:
		return errToken()
	}
	return nil
}

// refuseOver is the 409 for a write of an agent under a run of its own that is over: another
// agent may have taken over the run's issue.
func refuseOver(r entity.Run) error {
	return core.RefuseCode(ledger.Conflict, "run_over", core.Object{}.Str("code", "run_over").Str("runId", r.ID).
		Str("status", string(r.Status)).Close(),
		"The run of this request is over; what it writes is refused")
}

// Prefetch names the rows that authorising a command reads, and that most handlers read
// after it.
func Prefetch(cmd *ledger.Command, want func(key []byte)) {
	of := cmd.Company
	if of == "" || strings.Contains(string(of), "/") {
		return
	}
	want(entity.CompanyTable.Key(of, of))
	if cmd.Actor.Type == "agent" {
		want(core.OwnerKey(cmd.Actor.ID))
		want(entity.AgentTable.Key(of, cmd.Actor.ID))
		switch cmd.Credential.Kind {
		case "agent_key":
			want(AgentKeys.Key(of, cmd.Credential.ID))
		case "run":
			want(entity.RunTable.Key(of, cmd.Credential.ID))
		}
	}
	if cmd.Run != "" {
		want(entity.RunTable.Key(of, cmd.Run))
	}
	if kind, _ := company.KindOf(cmd.Kind); kind.Reads != nil {
		kind.Reads(cmd, want)
	}
}

// afterRun reports whether commands of a kind accept the token of a run that is over.
func afterRun(name string) bool {
	kind, _ := company.KindOf(name)
	return kind.Has(company.AfterRun)
}
