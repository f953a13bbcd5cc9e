package file

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A WorkProduct is a result of the work on an issue, and where it is: a pull request, a
// commit, a preview, a file.
type WorkProduct struct {
	ID                 string           `cbor:"1,keyasint" json:"id"`
	Company            ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Project            core.NullText    `cbor:"3,keyasint,omitempty" json:"projectId"`
	Issue              string           `cbor:"4,keyasint" json:"issueId"`
	ExecutionWorkspace core.NullText    `cbor:"5,keyasint,omitempty" json:"executionWorkspaceId"`
	RuntimeService     core.NullText    `cbor:"6,keyasint,omitempty" json:"runtimeServiceId"`
	Type               string           `cbor:"7,keyasint" json:"type"`
	Provider           string           `cbor:"8,keyasint" json:"provider"`
	External           core.NullText    `cbor:"9,keyasint,omitempty" json:"externalId"`
	Title              string           `cbor:"10,keyasint" json:"title"`
	URL                core.NullText    `cbor:"11,keyasint,omitempty" json:"url"`
	Status             string           `cbor:"12,keyasint" json:"status"`
	ReviewState        string           `cbor:"13,keyasint" json:"reviewState"`
	Primary            bool             `cbor:"14,keyasint,omitempty" json:"isPrimary"`
	Health             string           `cbor:"15,keyasint" json:"healthStatus"`
	Summary            core.NullText    `cbor:"16,keyasint,omitempty" json:"summary"`
	Metadata           json.RawMessage  `cbor:"17,keyasint,omitempty" json:"metadata"`
	SourceTrust        core.NullText    `cbor:"-" json:"sourceTrust"`
	Run                core.NullText    `cbor:"18,keyasint,omitempty" json:"createdByRunId"`
	CreatedAt          core.Time        `cbor:"19,keyasint" json:"createdAt"`
	UpdatedAt          core.Time        `cbor:"20,keyasint" json:"updatedAt"`
}

// Clone returns a copy that shares nothing with w.
func (w WorkProduct) Clone() WorkProduct {
	w.Metadata = slices.Clone(w.Metadata)
	return w
}

// Products are keyed by ID and indexed by work-product-issue/<issue>/<id>.
var (
	Products = core.Owned(ledger.NewTable[string, WorkProduct]("work-product").
			Beside(ledger.Indexed(productsIssue, func(w *WorkProduct) string { return w.Issue })))
	productsIssue = ledger.NewIndex[string, string]("work-product-issue")
)

// MaxProducts bounds the work products of one issue: lists return all of them.
const MaxProducts = 200

// Values that the fields of a work product may have.
var (
	ProductTypes = []string{"preview_url", "runtime_service", "pull_request", "branch", "commit",
		"artifact", "document"}
	ProductStatuses = []string{"active", "ready_for_review", "approved", "changes_requested", "merged", "closed", "failed",
		"archived", "draft"}
	ProductReviews = []string{"none", "needs_board_review", "approved", "changes_requested"}
	ProductHealths = []string{"unknown", "healthy", "unhealthy"}
)

// SaveProduct is the payload of product.create and product.update. In an update a nil field
// keeps the value; a pointer to "" and the Metadata "null" clear it.
type SaveProduct struct {
	ID                 string          `cbor:"1,keyasint"`
	Issue              string          `cbor:"2,keyasint,omitempty"` // of a new product
	Project            *string         `cbor:"3,keyasint,omitempty"` // nil in a new product: the issue's project
	ExecutionWorkspace *string         `cbor:"4,keyasint,omitempty"`
	RuntimeService     *string         `cbor:"5,keyasint,omitempty"`
	Type               *string         `cbor:"6,keyasint,omitempty"`
	Provider           *string         `cbor:"7,keyasint,omitempty"`
	External           *string         `cbor:"8,keyasint,omitempty"`
	Title              *string         `cbor:"9,keyasint,omitempty"`
	URL                *string         `cbor:"10,keyasint,omitempty"`
	Status             *string         `cbor:"11,keyasint,omitempty"`
	ReviewState        *string         `cbor:"12,keyasint,omitempty"`
	Primary            *bool           `cbor:"13,keyasint,omitempty"`
	Health             *string         `cbor:"14,keyasint,omitempty"`
	Summary            *string         `cbor:"15,keyasint,omitempty"`
	Metadata           json.RawMessage `cbor:"16,keyasint,omitempty"`
}

// DeleteProduct is the payload of product.delete.
type DeleteProduct struct {
	ID string `cbor:"1,keyasint"`
}

const (
	KindProductCreate = "product.create"
	KindProductUpdate = "product.update"
	KindProductDelete = "product.delete"
)

var productKinds = []company.Kind{
	{Name: KindProductCreate, From: company.FromBoard | company.FromAgent, Traits: company.Importable | company.SeldomWork,
		Weight: company.Weights.Text, Do: ledger.Typed(createProduct)},
	{Name: KindProductUpdate, From: company.FromBoard | company.FromAgent, Traits: company.SeldomWork,
		Weight: company.Weights.Text, Do: ledger.Typed(updateProduct)},
	{Name: KindProductDelete, From: company.FromBoard | company.FromAgent, Traits: company.SeldomWork,
		Weight: company.Weights.Erase, Do: ledger.Typed(deleteProduct)},
}

// ProductByID returns a work product, unless its issue is deleted.
func ProductByID(tx *ledger.Tx, id string) (WorkProduct, bool) {
	of := core.OwnerOf(tx, id)
	if of == "" {
		return WorkProduct{}, false
	}
	w, ok := Products.Get(tx, of, id)
	return w, ok && tx.Has(entity.IssueTable.Key(of, w.Issue))
}

// ProductsOf returns the work products of an issue: primary ones first, then newest first.
func ProductsOf(tx *ledger.Tx, i entity.Issue) []WorkProduct {
	out := []WorkProduct{}
	for id := range productsIssue.IDs(tx, i.Company, i.ID, false) {
		if w, ok := Products.Get(tx, i.Company, id); ok {
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b WorkProduct) int {
		if a.Primary != b.Primary {
			if a.Primary {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(b.ID, a.ID))
	})
	return out
}

func (w WorkProduct) with(p SaveProduct) WorkProduct {
	core.AssignText(&w.Project, p.Project)
	core.AssignText(&w.ExecutionWorkspace, p.ExecutionWorkspace)
	core.AssignText(&w.RuntimeService, p.RuntimeService)
	core.Assign(&w.Type, p.Type)
	core.Assign(&w.Provider, p.Provider)
	core.AssignText(&w.External, p.External)
	core.Assign(&w.Title, p.Title)
	core.AssignText(&w.URL, p.URL)
	core.Assign(&w.Status, p.Status)
	core.Assign(&w.ReviewState, p.ReviewState)
	core.Assign(&w.Primary, p.Primary)
	core.Assign(&w.Health, p.Health)
	core.AssignText(&w.Summary, p.Summary)
	switch string(p.Metadata) {
	case "":
	case "null":
		w.Metadata = nil
	default:
		w.Metadata = p.Metadata
	}
	return w
}

// check refuses an invalid work product. A row that the product named before may be deleted.
func (w WorkProduct) check(tx *ledger.Tx, before WorkProduct) error {
	for _, f := range []struct {
		name, value string
		of          []string
	}{{"type", w.Type, ProductTypes}, {"status", w.Status, ProductStatuses}, {"reviewState", w.ReviewState,
		ProductReviews}, {"healthStatus", w.Health, ProductHealths}} {
		if !slices.Contains(f.of, f.value) {
			return ledger.Refuse(ledger.Invalid, nil, "Unknown %s of a work product: %s", f.name, f.value)
		}
	}
	switch {
	case w.Title == "" || w.Provider == "":
		return ledger.Refuse(ledger.Invalid, nil, "A work product needs a title and a provider")
	case len(w.Title)+len(w.Provider)+len(w.URL)+len(w.External)+len(w.ExecutionWorkspace)+len(w.RuntimeService)+
		len(w.Summary)+len(w.Metadata) > 4*entity.MaxDescriptor:
		return ledger.Refuse(ledger.TooLarge, nil, "The work product is too long")
	case w.Project != "" && !entity.ProjectExists(tx, w.Company, string(w.Project)):
		return ledger.Refuse(ledger.NotFound, nil, "Project not found")
	case w.ExecutionWorkspace != before.ExecutionWorkspace && w.ExecutionWorkspace != "" && !company.Ask.HasWorkspace(tx,
		w.Company, string(w.ExecutionWorkspace)):
		return ledger.Refuse(ledger.NotFound, nil, "Execution workspace not found")
	case w.RuntimeService != before.RuntimeService && w.RuntimeService != "" && !company.Ask.HasService(tx, w.Company,
		string(w.RuntimeService)):
		return ledger.Refuse(ledger.NotFound, nil, "runtimeServiceId: runtime service not found")
	}
	return nil
}

func createProduct(c *ledger.Context, p SaveProduct) (any, error) {
	i, err := company.DocumentIssue(c, p.Issue)
	if err != nil {
		return nil, err
	}
	if err := core.CheckNewID(c.Tx, p.ID); err != nil {
		return nil, err
	}
	n := 0
	for range productsIssue.IDs(c.Tx, i.Company, i.ID, false) {
		n++
	}
	if n >= MaxProducts {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "An issue can have at most %d work products", MaxProducts)
	}
	now := core.TimeOf(c.Now)
	w := WorkProduct{ID: p.ID, Company: i.Company, Issue: i.ID, Project: core.NullText(i.Project), Status: "active",
		ReviewState: "none", Health: "unknown",
		Run: core.NullText(c.Cmd.Run), CreatedAt: now, UpdatedAt: now}.with(p)
	if err := w.check(c.Tx, WorkProduct{}); err != nil {
		return nil, err
	}
	company.AddExtra(c.Tx, i.Company, i.ID, company.HasProducts)
	w.keep(c, i)
	c.Record(ledger.Change{Action: "issue.work_product_created", EntityType: "issue", EntityID: i.ID,
		Details: w.details()})
	return w, nil
}

// keep stores w. If w is primary, the issue's other products of its type no longer are.
func (w WorkProduct) keep(c *ledger.Context, i entity.Issue) {
	if w.Primary {
		for _, o := range ProductsOf(c.Tx, i) {
			if o.Primary && o.Type == w.Type && o.ID != w.ID {
				o.Primary, o.UpdatedAt = false, core.TimeOf(c.Now)
				Products.Put(c.Tx, i.Company, o.ID, o)
			}
		}
	}
	Products.Put(c.Tx, i.Company, w.ID, w)
	company.Touch(c, i)
}

func (w WorkProduct) details() json.RawMessage {
	return core.Object{}.Str("workProductId", w.ID).Str("type", w.Type).Str("provider", w.Provider).Close()
}

func productFor(c *ledger.Context, id string) (w WorkProduct, i entity.Issue, err error) {
	w, ok := Products.Get(c.Tx, c.Cmd.Company, id)
	if !ok || !c.Has(entity.IssueTable.Key(c.Cmd.Company, w.Issue)) {
		return w, i, ledger.Refuse(ledger.NotFound, nil, "Work product not found")
	}
	i, err = company.DocumentIssue(c, w.Issue)
	return w, i, err
}

func updateProduct(c *ledger.Context, p SaveProduct) (any, error) {
	w, i, err := productFor(c, p.ID)
	if err != nil {
		return nil, err
	}
	before := w
	w = w.with(p)
	w.UpdatedAt = core.TimeOf(c.Now)
	if err := w.check(c.Tx, before); err != nil {
		return nil, err
	}
	w.keep(c, i)
	c.Record(ledger.Change{Action: "issue.work_product_updated", EntityType: "issue", EntityID: i.ID,
		Details: w.details()})
	return w, nil
}

func deleteProduct(c *ledger.Context, p DeleteProduct) (any, error) {
	w, i, err := productFor(c, p.ID)
	if err != nil {
		return nil, err
	}
	dropProduct(c.Tx, w)
	company.Touch(c, i)
	c.Record(ledger.Change{Action: "issue.work_product_deleted", EntityType: "issue", EntityID: i.ID,
		Details: w.details()})
	return w, nil
}

func dropProduct(tx *ledger.Tx, w WorkProduct) {
	Products.Delete(tx, w.Company, w.ID)
}
