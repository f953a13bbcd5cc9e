package memory

import (
	"crypto/sha256"
	"regexp"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
	index "github.com/selvage-mesh/selvage/memory"
)

// An Embedding says which model of the gateway embeds what is remembered, and who pays. One
// of the mesh holds for each company that has none of its own.
type Embedding struct {
	Model   string `cbor:"1,keyasint,omitempty" json:"model"` // as the gateway knows it; "": no model
	Version string `cbor:"2,keyasint,omitempty" json:"version"`
	// whose budget pays; null: the agent that reports to nobody
	Agent core.NullText `cbor:"3,keyasint,omitempty" json:"agentId"`

	// Question is what the gateway calls the model where it embeds questions in another way
	// than texts, "" where it does not.
	Question string `cbor:"5,keyasint,omitempty" json:"questionModel"`

	UpdatedAt core.Time `cbor:"4,keyasint,omitempty" json:"updatedAt"`
}

// Name is what the vectors of an embedding are called, "" without a model. Vectors of two
// names are never compared.
func (e Embedding) Name() string {
	if e.Model == "" {
		return ""
	}
	return e.Model + "@" + e.Version
}

// Configure is the payload of memory.configure, for the command's company or, without one,
// for the mesh. Inherit takes a company's own setting away.
type Configure struct {
	Model    string `cbor:"1,keyasint,omitempty"` // "": nodes embed by words alone
	Version  string `cbor:"2,keyasint,omitempty"` // default: 1
	Agent    string `cbor:"3,keyasint,omitempty"`
	Inherit  bool   `cbor:"4,keyasint,omitempty"`
	Question string `cbor:"5,keyasint,omitempty"`
}

// Embed is the payload of memory.embed, by which a node stores vectors that a model of the
// gateway made.
type Embed struct {
	Model   string     `cbor:"1,keyasint,omitempty"` // [Embedding.Name] of the company; "": vectors are taken away
	Vectors []Embedded `cbor:"2,keyasint"`
}

// An Embedded is the vector of a record. It is stored only if the record's text still has
// the digest Text.
type Embedded struct {
	ID     string       `cbor:"1,keyasint"`
	Text   []byte       `cbor:"2,keyasint"` // [TextDigest]
	Vector index.Vector `cbor:"3,keyasint,omitempty"`
}

// TextDigest tells texts apart.
func TextDigest(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:16]
}

const (
	KindConfigure = "memory.configure"
	KindEmbed     = "memory.embed"
)

var (
	embeddings     = ledger.NewTable[string, Embedding]("memory-embedding")
	meshEmbeddings = ledger.NewMeshTable[string, Embedding]("memory-embedding")
	modelNames     = regexp.MustCompile(`^[!-?A-~]{1,100}$`) // no space, no @
	versions       = regexp.MustCompile(`^[a-z0-9._-]{1,20}$`)
)

const embeddingKey = "setting"

// EmbeddingOf returns what was set for a company, or with "" for the mesh.
func EmbeddingOf(tx *ledger.Tx, company ledger.CompanyID) (Embedding, bool) {
	if company == "" {
		return meshEmbeddings.Get(tx, embeddingKey)
	}
	return embeddings.Get(tx, company, embeddingKey)
}

// EmbeddingFor returns what holds for a company, with the agent who pays, "" for none.
func EmbeddingFor(tx *ledger.Tx, company ledger.CompanyID) Embedding {
	e, ok := EmbeddingOf(tx, company)
	if !ok {
		e, _ = EmbeddingOf(tx, "")
	}
	if e.Model == "" || e.Agent != "" {
		return e
	}
	for _, a := range entity.AgentsOf(tx, company, false) {
		if a.ReportsTo == "" {
			e.Agent = core.NullText(a.ID)
			break
		}
	}
	return e
}

func configure(c *ledger.Context, p Configure) (any, error) {
	of := c.Cmd.Company
	e := Embedding{Model: p.Model, Agent: core.NullText(p.Agent), Question: p.Question, UpdatedAt: core.TimeOf(c.Now)}
	if e.Model != "" {
		if e.Version = p.Version; e.Version == "" {
			e.Version = "1"
		}
	}
	switch {
	case p.Inherit && (of == "" || p.Model != "" || p.Agent != "" || p.Version != "" || p.Question != ""):
		return nil, ledger.Refuse(ledger.Invalid, nil,
			"inherit: takes the setting of a company away, and goes with nothing else")
	case e.Model != "" && (!modelNames.MatchString(e.Model) || len(e.Name()) > MaxModel || e.Model == index.Lexical):
		return nil, ledger.Refuse(ledger.Invalid, nil,
			"model: the name of a model of the gateway, at most 100 characters without spaces and @")
	case e.Model != "" && !versions.MatchString(e.Version):
		return nil, ledger.Refuse(ledger.Invalid, nil,
			"version: at most 20 lower case letters, digits, dots, dashes and underscores")
	case e.Question != "" && !modelNames.MatchString(e.Question):
		return nil, ledger.Refuse(ledger.Invalid, nil, "questionModel: the name of a model of the gateway, as of model")
	case e.Model == "" && (p.Agent != "" || p.Version != "" || p.Question != ""):
		return nil, ledger.Refuse(ledger.Invalid, nil, "agentId, version and questionModel: go with a model")
	case of == "" && p.Agent != "":
		return nil, ledger.Refuse(ledger.Invalid, nil, "agentId: is of one company; a setting of the mesh has none")
	}
	if p.Agent != "" {
		if a, ok := entity.AgentTable.Get(c.Tx, of, p.Agent); !ok || a.Status == entity.AgentTerminated {
			return nil, ledger.Refuse(ledger.NotFound, nil, "agentId: agent not found")
		}
	}
	switch {
	case p.Inherit:
		embeddings.Delete(c.Tx, of, embeddingKey)
		e = EmbeddingFor(c.Tx, of)
	case of == "":
		meshEmbeddings.Put(c.Tx, embeddingKey, e)
	default:
		embeddings.Put(c.Tx, of, embeddingKey, e)
	}
	entityID := string(of)
	if of == "" {
		entityID = embeddingKey
	}
	c.Record(ledger.Change{Action: "memory.configured", EntityType: "memory", EntityID: entityID,
		Details: core.Object{}.Null("model", e.Name()).Null("agentId", string(e.Agent)).Bool("inherit", p.Inherit).Close()})
	return e, nil
}

// embed stores vectors. A record keeps what it has when its text has changed meanwhile, when
// its author gave it a vector, or when it has a vector of this model already.
func embed(c *ledger.Context, p Embed) (any, error) {
	of := c.Cmd.Company
	if len(p.Vectors) == 0 || len(p.Vectors) > MaxEmbedded {
		return nil, ledger.Refuse(ledger.Invalid, nil, "vectors: 1 to %d are stored at once", MaxEmbedded)
	}
	if e := EmbeddingFor(c.Tx, of); e.Name() != p.Model {
		return nil, ledger.Refuse(ledger.Conflict, nil, "model: the company's is %q now", e.Name())
	}
	n, first := int64(0), ""
	for _, v := range p.Vectors {
		was, ok := Of(c.Tx, of, v.ID)
		if !ok || !was.embeddable(p.Model) || string(TextDigest(was.Text)) != string(v.Text) {
			continue
		}
		next, err := was.embedded(c, p.Model, v.Vector)
		if err != nil {
			return nil, err
		}
		store(c.Tx, was, next)
		if n++; first == "" {
			first = was.ID
		}
	}
	if n == 0 {
		return nil, ledger.Refuse(ledger.Conflict, nil, "none of these memories needs such a vector")
	}
	c.Record(ledger.Change{Action: "memory.embedded", EntityType: "memory", EntityID: first,
		Details: core.Object{}.Int("count", n).Null("model", p.Model).Close()})
	return nil, nil
}

// embeddable reports whether a node may give r a vector of a model, or with "" take its
// vector away.
func (r Record) embeddable(model string) bool {
	if r.Model != "" && !r.Embedded {
		return false
	}
	return string(r.Model) != model
}

// embedded is r with a vector from a node. The stored payload of its vector before is erased.
func (r Record) embedded(c *ledger.Context, model string, v index.Vector) (Record, error) {
	was := r
	r = r.withoutVector(c.Tx)
	if model != "" {
		if err := v.Check(); err != nil {
			return r, ledger.Refuse(ledger.Invalid, nil, "%s", err.Error())
		}
		r.Model, r.Vector, r.Embedded = core.NullText(model), v, true
		r.Brought = []body{{c.Index, c.Salt}}
	}
	return r, CountOf(c.Tx, r.Company).fits(was, r)
}

// withoutVector is r without its vector. If a node brought it, that payload is erased, with
// the vectors of other records that are in it: these have them in their own rows.
func (r Record) withoutVector(tx *ledger.Tx) Record {
	for _, b := range r.Brought {
		ledger.EraseBody(tx, r.Company, b.Index, b.Salt)
	}
	r.Model, r.Vector, r.Embedded, r.Brought = "", nil, false, nil
	return r
}

var embeddingKinds = []company.Kind{
	{Name: KindConfigure, From: company.FromBoard, Traits: company.NoWork | company.LeadersOnly,
		Weight: company.Weights.SetUp, Do: ledger.Typed(configure)},
	{Name: KindEmbed, From: company.FromNode, Traits: company.NoWork, Weight: company.Weights.ByNodes,
		Do: ledger.Typed(embed)},
}
