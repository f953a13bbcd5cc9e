// Package transfer executes imports: many commands as one.
package transfer

import (
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// An ImportStep is one command of an import: its kind, and its payload in CBOR.
type ImportStep struct {
	Kind    string `cbor:"1,keyasint"`
	Payload []byte `cbor:"2,keyasint"`
	// Author is the agent who wrote the comment that the step adds to an issue, a text or a
	// skill. Without one, the author is the importer.
	Author string `cbor:"3,keyasint,omitempty"`
	// Number is the number of the step's issue in a new company (7 of ACM-7). It is used only
	// if it is above the company's counter.
	Number uint64 `cbor:"4,keyasint,omitempty"`
}

// ImportCompany is the payload of company.import, which executes all of its steps or none. It
// starts no work: no agent is woken, and timers of imported rows are off. The first step of
// an import into a new company is company.create.
type ImportCompany struct {
	Steps []ImportStep `cbor:"1,keyasint,omitempty"`
	// Details is the JSON for the import's line in the activity log.
	Details []byte `cbor:"2,keyasint,omitempty"`
	// Parts are the IDs of staged parts with the CBOR of the steps, if the steps do not fit a
	// command. Sum is the SHA-256 of the CBOR. For a new company the parts are staged outside
	// companies.
	Parts []string `cbor:"3,keyasint,omitempty"`
	Sum   string   `cbor:"4,keyasint,omitempty"`
	// New says that the parts are staged outside companies.
	New bool `cbor:"5,keyasint,omitempty"`
	// Job is the import job that this command ends. Summary is the JSON of a summary; Result,
	// if it is not too long, of the whole result.
	Job     string `cbor:"6,keyasint,omitempty"`
	Summary []byte `cbor:"7,keyasint,omitempty"`
	Result  []byte `cbor:"8,keyasint,omitempty"`
}

const (
	// MaxImportSteps bounds the commands of one import. Each writes three to eight keys; the
	// import may write ledger.MaxTouchedWide keys in all. 5,000 issues with 20,000 comments and
	// 2,500 documents are 27,500 steps, 91,000 keys and 0.9 s.
	MaxImportSteps = 30_000
	// maxIssueJump bounds how far an imported number may be above the company's counter.
	maxIssueJump = 1_000_000
	// MaxImport bounds the steps of one import, in bytes.
	MaxImport = 32 << 20
)

// ImportFits refuses an import of n steps if that is too many for one command.
func ImportFits(n int) error {
	if n > 0 && n <= MaxImportSteps {
		return nil
	}
	return ledger.Refuse(ledger.Unprocessable, nil,
		"An import has 1 to %d parts (issues, comments, documents and so on), this one has %d: import fewer of them at once",
		MaxImportSteps, n)
}

const KindCompanyImport = "company.import"

var importKinds = []company.Kind{
	{Name: KindCompanyImport, From: company.FromBoard, Traits: company.Founds | company.EndsKeys,
		Weight: company.Weights.SetUp, Do: ledger.Typed(carryImport)},
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
		j = j.end(JobSucceeded, "", core.TimeOf(c.Now)) // recorded only if the whole import succeeds
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
	c.Record(ledger.Change{Action: "company.imported", EntityType: "company", EntityID: string(row.ID),
		Details: p.Details})
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

// comment adds a comment with the agent that wrote it as its author.
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

// skipTo makes n the number of the next issue, if it is above the counter and less than
// maxIssueJump away.
func skipTo(tx *ledger.Tx, of ledger.CompanyID, n uint64) {
	row, ok := entity.CompanyTable.Get(tx, of, of)
	if ok && n > row.IssueCounter+1 && n < row.IssueCounter+maxIssueJump {
		row.IssueCounter = n - 1
		entity.CompanyTable.Put(tx, of, of, row)
	}
}

// Rules are the commands and hooks that this package adds to the kernel.
var Rules = company.Rules{Kinds: slices.Concat(importKinds, importJobKinds)}
