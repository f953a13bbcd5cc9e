// Package transfer carries imports out: many commands as one.
package transfer

import (
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// An ImportStep is one command that an import is made of: its kind, and its
// payload in CBOR.
type ImportStep struct {
	Kind    string `cbor:"1,keyasint"`
	Payload []byte `cbor:"2,keyasint"`
	// Author is the agent who said what the step says, on an issue, a text or a
	// skill; what has none is the importer's.
	Author string `cbor:"3,keyasint,omitempty"`
	// Number is what an issue of a new company is to be called (7 of ACM-7), when
	// that is still ahead.
	Number uint64 `cbor:"4,keyasint,omitempty"`
}

// ImportCompany is the payload of company.import, which carries out all of its
// steps or none. Nothing starts because of it: no agent is woken, and timers
// are off in what is imported. The first step of an import into a new company
// is company.create.
type ImportCompany struct {
	Steps []ImportStep `cbor:"1,keyasint,omitempty"`
	// Details is the JSON of what the activity says about the import.
	Details []byte `cbor:"2,keyasint,omitempty"`
	// Parts are staged, and hold the CBOR of the steps when these are too long for
	// a command; Sum is the SHA-256 of it. For a company that is not there yet
	// they are staged under no company.
	Parts []string `cbor:"3,keyasint,omitempty"`
	Sum   string   `cbor:"4,keyasint,omitempty"`
	// New says that the parts lie under no company.
	New bool `cbor:"5,keyasint,omitempty"`
	// Job is the import job that this ends, with the JSON of what came of it in
	// short and, where that is not too long, whole.
	Job     string `cbor:"6,keyasint,omitempty"`
	Summary []byte `cbor:"7,keyasint,omitempty"`
	Result  []byte `cbor:"8,keyasint,omitempty"`
}

const (
	// MaxImportSteps bounds the commands of one import. Each writes three to eight
	// keys, and all of them at most ledger.MaxTouchedWide. 5,000 issues with 20,000
	// comments and 2,500 documents are 27,500 steps, 91,000 keys and 0.9 s.
	MaxImportSteps = 30_000
	// maxIssueJump bounds how far an imported number may lie ahead.
	maxIssueJump = 1_000_000
	// MaxImport bounds the steps of one import, in bytes.
	MaxImport = 32 << 20
)

// ImportFits refuses an import of n steps that the mesh does not take at once.
func ImportFits(n int) error {
	if n > 0 && n <= MaxImportSteps {
		return nil
	}
	return ledger.Refuse(ledger.Unprocessable, nil, "An import has 1 to %d parts (issues, comments, documents and so on), this one has %d: import fewer of them at once", MaxImportSteps, n)
}

const KindCompanyImport = "company.import"

var importKinds = []company.Kind{
	{Name: KindCompanyImport, From: company.FromBoard, Traits: company.Founds | company.EndsKeys, Do: ledger.Typed(carryImport)},
}

func carryImport(c *ledger.Context, p ImportCompany) (any, error) { return nil, importCompany(c, p) }

func importCompany(c *ledger.Context, p ImportCompany) error {
	if p.Job != "" {
		j, err := runningJob(c, p.Job)
		if err != nil {
			return err
		}
		if len(p.Summary) > maxJobText || len(p.Result) > MaxImportResult {
			return ledger.Refuse(ledger.Invalid, nil, "the result of an import is too long")
		}
		j = j.end(JobSucceeded, "", core.TimeOf(c.Now)) // kept only if all of the import is
		j.Summary, j.Result = p.Summary, p.Result
		importJobs.Put(c.Tx, j.ID, j)
	}
	if len(p.Parts) > 0 {
		of := c.Cmd.Company
		if p.New {
			of = ""
		}
		b, err := company.JoinParts(c.Tx, of, p.Parts, p.Sum, MaxImport)
		if err != nil {
			return err
		}
		if err := ledger.Unmarshal(b, &p.Steps); err != nil {
			return ledger.Refuse(ledger.Invalid, nil, "malformed steps of an import")
		}
		company.DropParts(c.Tx, of, p.Parts)
	}
	c.Widen()
	if err := ImportFits(len(p.Steps)); err != nil {
		return err
	}
	created := p.Steps[0].Kind == company.KindCompanyCreate
	if !created {
		if _, err := company.Present(c); err != nil {
			return err
		}
	}
	for n, s := range p.Steps {
		kind, _ := company.KindOf(s.Kind)
		if !kind.Has(company.Importable) || kind.Has(company.Founds) && n > 0 {
			return ledger.Refuse(ledger.Invalid, nil, "An import can not hold %s", s.Kind)
		}
		if err := s.carryOut(c, kind.Do, created); err != nil {
			return err
		}
	}
	row, err := company.Present(c)
	if err != nil {
		return err
	}
	c.Record(ledger.Change{Action: "company.imported", EntityType: "company", EntityID: string(row.ID), Details: p.Details})
	return nil
}

func (s ImportStep) carryOut(c *ledger.Context, do ledger.Handler, created bool) error {
	cmd := *c.Cmd
	cmd.Kind, cmd.Payload = s.Kind, s.Payload
	part := c.Within(&cmd)
	kind, _ := company.KindOf(s.Kind)
	switch {
	case kind.Has(company.Authored):
		if s.Author == "" {
			break
		}
		if _, ok := entity.AgentTable.Get(c.Tx, cmd.Company, s.Author); !ok {
			return entity.ErrNoAgent()
		}
		cmd.Actor = ledger.Actor{Type: "agent", ID: s.Author}
	case s.Kind == company.KindCommentCreate:
		if s.Author != "" {
			return s.comment(part)
		}
	case s.Kind == company.KindIssueCreate:
		if created && s.Number > 0 {
			skipTo(c.Tx, cmd.Company, s.Number)
		}
	}
	_, err := do(part)
	return err
}

// comment adds a comment in the name of the agent that wrote it.
func (s ImportStep) comment(c *ledger.Context) error {
	var p entity.CreateComment
	if err := ledger.Unmarshal(s.Payload, &p); err != nil {
		return ledger.Refuse(ledger.Invalid, nil, "malformed comment")
	}
	i, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return company.ErrNoIssue()
	}
	if _, ok := entity.AgentTable.Get(c.Tx, c.Cmd.Company, s.Author); !ok {
		return entity.ErrNoAgent()
	}
	c.Cmd.Actor = ledger.Actor{Type: "agent", ID: s.Author}
	next, _, err := company.AddComment(c, i, p)
	if err == nil {
		company.StoreIssue(c.Tx, i, next)
	}
	return err
}

// skipTo makes n the next issue's number, unless the company is there already.
func skipTo(tx *ledger.Tx, of ledger.CompanyID, n uint64) {
	row, ok := entity.CompanyTable.Get(tx, of, of)
	if ok && n > row.IssueCounter+1 && n < row.IssueCounter+maxIssueJump {
		row.IssueCounter = n - 1
		entity.CompanyTable.Put(tx, of, of, row)
	}
}

// Rules are what imports add to the kernel.
var Rules = company.Rules{Kinds: slices.Concat(importKinds, importJobKinds)}
