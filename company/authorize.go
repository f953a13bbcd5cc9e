package company

import (
	"strings"

	"github.com/selvage-mesh/selvage/ledger"
)

// An allowance says which actors may give a kind of command.
type allowance uint8

const (
	mayBoard  allowance = 1 << iota // a person
	mayAgent                        // an agent of the command's company; the handler looks closer
	mayNode                         // a member node, or the system
	mayRoster = mayBoard | mayNode
)

// allowed is the permission matrix, by kind. A kind that is not in it is
// nobody's. What depends on rows (one's own issue, one's own subtree) is for
// the handlers.
var allowed = map[string]allowance{
	// What is about the mesh itself has no company.
	"mesh.genesis": mayRoster, "mesh.epoch": mayNode, "node.admit": mayRoster, "node.revoke": mayRoster, "token.create": mayRoster, "token.revoke": mayRoster, "owner.add": mayBoard,
	"session.open": mayNode, "session.end": mayNode, "session.lease": mayNode, "time.step": mayRoster, "feature.raise": mayRoster, "keys.rotate": mayRoster,
	"node.update": mayRoster, "node.lost": mayNode, "run.lost": mayNode,
	"mesh.stop": mayBoard, "mesh.resume": mayBoard, "mesh.quiesce": mayNode, "node.cordon": mayRoster, "node.uncordon": mayRoster,

	"company.create": mayBoard, "company.update": mayBoard, "company.branding": mayBoard, "company.archive": mayBoard,
	"company.import": mayBoard, "import_job.begin": mayBoard, "import_job.progress": mayBoard, "import_job.fail": mayBoard, "import_job.sweep": mayNode,
	"company.pause": mayBoard, "company.resume": mayBoard, "company.delete": mayBoard | mayNode, "company.settle": mayNode,
	"agent.create": mayBoard, "agent.update": mayBoard | mayAgent, "agent.permissions": mayBoard,
	"agent.pause": mayBoard, "agent.resume": mayBoard, "agent.terminate": mayBoard, "agent.delete": mayBoard,
	"agent.hire":      mayBoard | mayAgent,
	"approval.create": mayBoard | mayAgent, "approval.approve": mayBoard, "approval.reject": mayBoard, "approval.revise": mayBoard, "approval.cancel": mayBoard,
	"approval.resubmit": mayBoard | mayAgent, "approval.comment": mayBoard | mayAgent, "approval.link": mayBoard | mayAgent, "approval.unlink": mayBoard | mayAgent,
	"agent_key.create": mayBoard, "agent_key.revoke": mayBoard,
	"member.update": mayBoard, "member.archive": mayBoard, "member.set": mayBoard,
	"invite.create": mayBoard, "invite.revoke": mayBoard, "invite.accept": mayBoard | mayNode,
	"join.approve": mayBoard, "join.reject": mayBoard, "join.claim": mayNode,
	"board_key.create": mayBoard, "board_key.revoke": mayBoard,
	"cli_auth.open": mayNode, "cli_auth.approve": mayBoard, "cli_auth.cancel": mayNode,
	"user.create": mayNode, "user.sign_in": mayNode, "user.sign_out": mayBoard, "user.claim": mayBoard,
	"user.update": mayBoard, "user.password": mayBoard, "user.admin": mayBoard, "user.revoke": mayBoard, "user.suspend": mayBoard,
	"instance.auth": mayBoard, "instance.endpoint": mayNode,
	"goal.create": mayBoard | mayAgent, "goal.update": mayBoard | mayAgent, "goal.delete": mayBoard,
	"project.create": mayBoard | mayAgent, "project.update": mayBoard | mayAgent, "project.delete": mayBoard,
	"workspace.create": mayBoard | mayAgent, "workspace.update": mayBoard | mayAgent, "workspace.delete": mayBoard,
	"agent.rollback": mayBoard, "instance.settings": mayBoard, "sidebar.order": mayBoard,
	"secret.create": mayBoard, "secret.rotate": mayBoard, "secret.update": mayBoard, "secret.delete": mayBoard, "secret.access": mayNode, "secret.reseal": mayNode,
	"user_secret.define": mayBoard, "user_secret.redefine": mayBoard, "user_secret.undefine": mayBoard,
	"activity.note":       mayBoard | mayNode,
	"model_provider.save": mayBoard, "model_provider.remove": mayBoard, "model_price.set": mayBoard, "model_price.remove": mayBoard,

	"routine.create": mayBoard | mayAgent, "routine.update": mayBoard | mayAgent, "routine.restore": mayBoard | mayAgent, "routine.delete": mayBoard,
	"routine.run": mayBoard | mayAgent, "routine.fire": mayNode, "routine.tick": mayNode,
	"routine_trigger.create": mayBoard | mayAgent, "routine_trigger.update": mayBoard | mayAgent,
	"routine_trigger.rotate": mayBoard | mayAgent, "routine_trigger.delete": mayBoard | mayAgent,
	"folder.save": mayBoard, "folder.delete": mayBoard, "folder.file": mayBoard,

	"issue.create": mayBoard | mayAgent, "issue.update": mayBoard | mayAgent, "issue.delete": mayBoard | mayAgent,
	"issue.checkout": mayBoard | mayAgent, "issue.release": mayBoard | mayAgent, "issue.force_release": mayBoard,
	"issue.resolve_recovery": mayBoard | mayAgent, "issue.vote": mayBoard, "resource.join": mayBoard,
	"issue.monitor": mayBoard | mayAgent | mayNode, "issue.index": mayNode, "watchdog.set": mayBoard | mayAgent, "watchdog.remove": mayBoard | mayAgent,
	"run.watch": mayBoard | mayAgent, "run.retry_now": mayBoard | mayAgent,
	"queue.edit": mayBoard, "queue.drop": mayBoard, "queue.order": mayBoard, "queue.interrupt": mayBoard,
	"tree.hold": mayBoard, "tree.release": mayBoard,
	"inbox.dismiss": mayBoard, "inbox.restore": mayBoard,
	"issue.read": mayBoard | mayAgent, "issue.unread": mayBoard | mayAgent, "issue.archive": mayBoard | mayAgent, "issue.unarchive": mayBoard | mayAgent,
	"comment.create": mayBoard | mayAgent, "comment.delete": mayBoard | mayAgent,
	"label.create": mayBoard | mayAgent, "label.delete": mayBoard | mayAgent,
	"cost.report":  mayBoard | mayAgent | mayNode,
	"finance.book": mayBoard,
	"budget.set":   mayBoard | mayAgent, "budget.resolve": mayBoard, "budget.sweep": mayBoard | mayNode,
	"budget.reserve": mayNode, "budget.settle": mayNode, "budget.writeoff": mayBoard,

	"agent.wake": mayBoard | mayAgent | mayNode, "agent.reset_session": mayBoard | mayAgent, "timer.tick": mayNode,
	"run.place": mayNode, "run.unplaced": mayNode, "run.return": mayNode, "run.start": mayNode, "run.report": mayNode, "run.finish": mayNode, "run.cost": mayNode,
	"run_log.keep": mayNode, "run_log.sweep": mayNode, "run_event.sweep": mayNode,
	"run.cancel": mayBoard | mayAgent | mayNode, "run.callback": mayAgent,
	"tool.trace": mayAgent,
	"memory.put": mayBoard | mayAgent, "memory.delete": mayBoard | mayAgent, "message.send": mayBoard | mayAgent, "message.take": mayBoard | mayAgent,
	"tool.deploy": mayBoard, "tool.revoke": mayBoard, "tool.execute": mayBoard | mayAgent,
	"skill.create": mayBoard | mayAgent, "skill.update": mayBoard | mayAgent, "skill.delete": mayBoard | mayAgent, "skill.file": mayBoard | mayAgent,
	"skill.version": mayBoard | mayAgent, "skill.fork": mayBoard | mayAgent, "skill.reset": mayBoard | mayAgent, "skill.rename": mayBoard | mayAgent, "skill.star": mayBoard,
	"skill_comment.create": mayBoard | mayAgent, "skill_comment.update": mayBoard | mayAgent,
	"skill_test.input": mayBoard | mayAgent, "skill_test.start": mayBoard | mayAgent, "skill_test.forget": mayBoard | mayAgent, "skill_test.keep": mayBoard,
	"agent.skills":      mayBoard | mayAgent,
	"instructions.file": mayBoard | mayAgent, "instructions.set": mayBoard | mayAgent,

	"asset.create": mayBoard | mayAgent,
	"part.put":     mayBoard | mayAgent | mayNode, "part.sweep": mayNode, "issue.sweep": mayNode, "issue.recover": mayNode,
	"document.save": mayBoard | mayAgent, "document.restore": mayBoard | mayAgent, "document.delete": mayBoard,
	"interaction.create": mayBoard | mayAgent, "interaction.accept": mayBoard | mayAgent, "interaction.answer": mayBoard | mayAgent,
	"interaction.reject": mayBoard | mayAgent, "interaction.cancel": mayBoard | mayAgent, "interaction.judge": mayBoard | mayAgent,
	"interaction.withdraw": mayBoard | mayAgent, "interaction.skip": mayBoard | mayAgent,
	"product.create": mayBoard | mayAgent, "product.update": mayBoard | mayAgent, "product.delete": mayBoard | mayAgent,
	"environment.save": mayBoard, "environment.delete": mayBoard, "environment.probe": mayBoard,
	"plan.decompose":    mayBoard | mayAgent,
	"annotation.create": mayBoard | mayAgent, "annotation.comment": mayBoard | mayAgent, "annotation.update": mayBoard | mayAgent,
	"routine_annotation.create": mayBoard | mayAgent, "routine_annotation.comment": mayBoard | mayAgent, "routine_annotation.update": mayBoard | mayAgent,
	"document.lock": mayBoard | mayAgent, "document.unlock": mayBoard | mayAgent,
	"attachment.create": mayBoard | mayAgent, "attachment.delete": mayBoard | mayAgent, "attachment.sweep": mayNode,
	"exec_workspace.update": mayBoard | mayAgent, "exec_workspace.realize": mayNode, "exec_workspace.cleaned": mayNode,
	"workspace_op.start": mayNode, "workspace_op.finish": mayNode, "workspace_op.request": mayBoard | mayAgent,
	"runtime_service.control": mayBoard | mayAgent, "runtime_service.report": mayNode,
}

// Authorize decides, before a command's handler sees it, whether its credential
// still holds, whether its company is there, and whether its actor may give
// such a command at all. The ledger calls it for every command, on every node,
// when the command is applied: what was true where the request came in may have
// changed since.
func Authorize(c *ledger.Context) error {
	who, err := actorOf(c)
	if err != nil {
		return err
	}
	if c.Cmd.Company != "" && c.Cmd.Kind != "company.create" && c.Cmd.Kind != "company.import" {
		row := companies.Look(c.Tx, c.Cmd.Company, c.Cmd.Company)
		// A company that is being removed still takes what winds it up.
		if row == nil || row.Status == CompanyDeleting && c.Cmd.Kind != "company.delete" && who != mayNode {
			return errNoCompany()
		}
	}
	if allowed[c.Cmd.Kind]&who == 0 {
		return refuseKind(who)
	}
	if who == mayBoard && c.Cmd.Credential.Kind != "local" {
		return checkPerson(c)
	}
	return nil
}

func refuseKind(who allowance) error {
	if who == mayAgent {
		return errBoardOnly()
	}
	return ledger.Refuse(ledger.Forbidden, nil, "The actor may not do this")
}

// actorOf checks the credential and says which column of the matrix counts.
func actorOf(c *ledger.Context) (allowance, error) {
	actor, cred := c.Cmd.Actor, c.Cmd.Credential
	switch {
	case actor.Type == "user" && cred.Kind == "local":
		if SignsIn(c.Tx) {
			return 0, errBoardOnly()
		}
		return mayBoard, nil
	case actor.Type == "user" && cred.Kind == "session":
		if s, ok := SessionByID(c.Tx, cred.ID); !ok || s.User != actor.ID || !s.Valid(TimeOf(c.Now)) {
			return 0, ledger.Refuse(ledger.Unauthorized, nil, "Board authentication required")
		}
		return mayBoard, nil
	case actor.Type == "user" && cred.Kind == "board_key":
		if k, ok := BoardKeyByID(c.Tx, cred.ID); !ok || k.User != actor.ID || !k.Valid(TimeOf(c.Now)) || !Speaks(c.Tx, k.User) {
			return 0, errToken()
		}
		return mayBoard, nil
	case actor.Type == "agent":
		return mayAgent, checkAgent(c)
	case (actor.Type == "node" || actor.Type == "system") && cred.Kind == "node":
		// A node speaks for itself only; the ledger has checked its signature
		// and its place in the roster. Genesis comes before there is a roster.
		if c.Mesh != "" && cred.ID != string(c.Origin) || actor.Type == "node" && actor.ID != cred.ID {
			return 0, ledger.Refuse(ledger.Unauthorized, nil, "A node can only speak for itself")
		}
		return mayNode, nil
	}
	return 0, ledger.Refuse(ledger.Unauthorized, nil, "The credential does not fit the actor")
}

func errToken() error {
	return ledger.Refuse(ledger.Unauthorized, nil, "Agent token did not verify; obtain fresh credentials and retry")
}

// checkAgent refuses an agent that is gone, one that acts in a company that is
// not its own, and one whose key was revoked or whose run is over.
func checkAgent(c *ledger.Context) error {
	actor, cred := c.Cmd.Actor, c.Cmd.Credential
	a := agents.Look(c.Tx, OwnerOf(c.Tx, actor.ID), actor.ID)
	if a == nil || a.Status == AgentTerminated || a.Status == AgentPendingApproval {
		return errToken()
	}
	if c.Cmd.Company != "" && a.Company != c.Cmd.Company {
		return ledger.Refuse(ledger.Forbidden, nil, "Agent key cannot access another company")
	}
	if run := c.Cmd.Run; run != "" && cred.Kind == "agent_key" {
		// Whose run it is stands in the record.
		r := runs.Look(c.Tx, a.Company, run)
		if r == nil || r.Agent != a.ID {
			return ledger.Refuse(ledger.Forbidden, nil, "The run is not one of this agent")
		}
		if !r.Status.Live() && !fencedByHandler[c.Cmd.Kind] {
			return refuseOver(*r)
		}
	}
	switch cred.Kind {
	case "agent_key":
		k := agentKeys.Look(c.Tx, a.Company, cred.ID)
		if k == nil || k.RevokedAt != 0 || k.Agent != a.ID {
			return errToken()
		}
	case "run":
		if r := runs.Look(c.Tx, a.Company, cred.ID); c.Cmd.Kind == "tool.trace" && r != nil && r.Agent == a.ID {
			break // the last calls of a run are noted after it has ended; its token was good when they were made
		}
		if !runAlive(c.Tx, a.Company, cred.ID, a.ID) {
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

// fencedByHandler are the kinds whose handlers refuse a run that is over by
// themselves, in the words of what they are about, or for which it makes no
// difference: a cancelled run is over, and what a run tells of its end comes then.
var fencedByHandler = map[string]bool{
	"issue.update": true, "issue.checkout": true, "issue.release": true, "comment.create": true, "cost.report": true,
	"run.cancel": true, "run.callback": true, "tool.trace": true,
}

// refuseOver is the 409 for an agent's write under a run of its own that is over:
// somebody else may be at work on what it was about.
func refuseOver(r Run) error {
	return refuseCode(ledger.Conflict, "run_over", jsonObject{}.str("code", "run_over").str("runId", r.ID).str("status", string(r.Status)).close(),
		"The run of this request is over; what it writes is refused")
}

// Prefetch names the rows that authorising a command, and most of the handlers
// after it, will read.
func Prefetch(cmd *ledger.Command, want func(key []byte)) {
	of := cmd.Company
	if of == "" || strings.Contains(of, "/") {
		return
	}
	want(companies.Key(of, of))
	if cmd.Actor.Type == "agent" {
		want(ownerKey(cmd.Actor.ID))
		want(agents.Key(of, cmd.Actor.ID))
		switch cmd.Credential.Kind {
		case "agent_key":
			want(agentKeys.Key(of, cmd.Credential.ID))
		case "run":
			want(runs.Key(of, cmd.Credential.ID))
		}
	}
	if cmd.Run != "" {
		want(runs.Key(of, cmd.Run))
	}
	switch cmd.Kind {
	case "issue.checkout", "issue.release", "issue.update":
		// All of them name the issue first.
		var p struct {
			Issue string `cbor:"1,keyasint"`
		}
		if ledger.Unmarshal(cmd.Payload, &p) == nil && isID(p.Issue) {
			want(issues.Key(of, p.Issue))
		}
	}
}
