package money

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// Bounds of the model gateway's rows.
const (
	// MaxModelProviders bounds the upstreams of a company, and of the mesh: each call searches
	// all of them.
	MaxModelProviders = 64
	// MaxModelRoutes bounds the model names of one upstream.
	MaxModelRoutes = 64
	// MaxModelLabels bounds the labels that an upstream requires of nodes.
	MaxModelLabels = 16
	// MaxModelName bounds the name of a model, in bytes, and of an upstream.
	MaxModelName = 200
	// MaxModelPrices bounds the prices of a company, and of the mesh.
	MaxModelPrices = 512
	// MaxModelPrice bounds a price, in micro-cents for a million tokens: ten thousand dollars. A
	// typing error is refused, and sums do not overflow.
	MaxModelPrice = 1_000_000_000_000
	// MaxModelKey bounds the key of an upstream, in bytes.
	MaxModelKey = 4 << 10
)

// A ModelKind is the wire format of an upstream. Persisted: do not rename.
type ModelKind string

// The kinds of upstreams.
const (
	ModelOpenAI     ModelKind = "openai"
	ModelAnthropic  ModelKind = "anthropic"
	ModelOpenRouter ModelKind = "openrouter"
	ModelGemini     ModelKind = "gemini"
	ModelOllama     ModelKind = "ollama"
	ModelVLLM       ModelKind = "vllm"
	ModelLlamaCpp   ModelKind = "llamacpp"
	ModelCompatible ModelKind = "openai_compatible"
)

// ModelKinds lists the kinds of upstreams.
var ModelKinds = []ModelKind{ModelOpenAI, ModelAnthropic, ModelOpenRouter, ModelGemini, ModelOllama, ModelVLLM,
	ModelLlamaCpp, ModelCompatible}

// Local reports whether an upstream of this kind is a server of the operator, whose calls
// have no price unless one is set.
func (k ModelKind) Local() bool { return k == ModelOllama || k == ModelVLLM || k == ModelLlamaCpp }

// DefaultURL returns the usual address of an upstream of this kind, "" when there is none.
func (k ModelKind) DefaultURL() string {
	switch k {
	case ModelOpenAI:
		return "https://api.openai.com/v1"
	case ModelAnthropic:
		return "https://api.anthropic.com"
	case ModelOpenRouter:
		return "https://openrouter.ai/api/v1"
	case ModelGemini:
		return "https://generativelanguage.googleapis.com/v1beta/openai"
	case ModelOllama:
		return "http://127.0.0.1:11434/v1"
	case ModelVLLM:
		return "http://127.0.0.1:8000/v1"
	case ModelLlamaCpp:
		return "http://127.0.0.1:8080/v1"
	}
	return ""
}

// A ModelProvider is an upstream of the model gateway: of one company, or of the mesh for all
// companies.
type ModelProvider struct {
	ID      string                      `cbor:"1,keyasint" json:"id"`
	Company core.Null[ledger.CompanyID] `cbor:"2,keyasint,omitempty" json:"companyId"` // null: of the mesh
	// lower case, digits, dots, dashes and underscores
	Name string    `cbor:"3,keyasint" json:"name"`
	Kind ModelKind `cbor:"4,keyasint" json:"kind"`
	// BaseURL is the address before "/chat/completions", or for kind anthropic before
	// "/v1/messages".
	BaseURL string `cbor:"5,keyasint" json:"baseUrl"`
	// Sealed is the key under [ValueAAD] with the path [ModelKeyPath]. Secret names a secret of
	// the company instead.
	Sealed string        `cbor:"6,keyasint,omitempty" json:"-"`
	Secret core.NullText `cbor:"7,keyasint,omitempty" json:"secretId"`
	// Models are the model names of the upstream; empty: the usual ones of its kind.
	Models []ModelRoute `cbor:"8,keyasint,omitempty" json:"models"`
	// Labels are required of a node that calls the upstream.
	Labels []string `cbor:"9,keyasint,omitempty" json:"labels"`
	// Priority orders upstreams with the same model name, lowest first.
	Priority int `cbor:"10,keyasint,omitempty" json:"priority"`
	// Free makes calls without a price free; otherwise they are refused.
	Free      bool      `cbor:"11,keyasint,omitempty" json:"free"`
	Disabled  bool      `cbor:"12,keyasint,omitempty" json:"disabled"`
	CreatedAt core.Time `cbor:"13,keyasint" json:"createdAt"`
	UpdatedAt core.Time `cbor:"14,keyasint" json:"updatedAt"`
}

// A ModelRoute is a model name of an upstream: a model, a pattern that ends in "*", or a tier
// ("tier/cheap"). As is the upstream's name for it, "" for the same.
type ModelRoute struct {
	Name string `cbor:"1,keyasint" json:"name"`
	As   string `cbor:"2,keyasint,omitempty" json:"as,omitempty"`
}

// ModelKeyPath is the path that an upstream's key is sealed for.
const ModelKeyPath = "apiKey"

// Clone returns a copy that shares no memory with p.
func (p ModelProvider) Clone() ModelProvider {
	p.Models, p.Labels = slices.Clone(p.Models), slices.Clone(p.Labels)
	return p
}

// HasKey reports whether the upstream has a key.
func (p ModelProvider) HasKey() bool { return p.Sealed != "" || p.Secret != "" }

// A ModelPrice is the price of a model's tokens, in micro-cents for a million. Model is a
// name, "upstream/name", or either with "*" at its end.
type ModelPrice struct {
	Model      string `cbor:"1,keyasint" json:"model"`
	Input      int64  `cbor:"2,keyasint,omitempty" json:"input"`
	Output     int64  `cbor:"3,keyasint,omitempty" json:"output"`
	CacheRead  int64  `cbor:"4,keyasint,omitempty" json:"cacheRead"`
	CacheWrite int64  `cbor:"5,keyasint,omitempty" json:"cacheWrite"`
	// Version counts how often the price was set, 0 for a built-in price. A removed price that is
	// set again starts at 1.
	Version   int       `cbor:"6,keyasint,omitempty" json:"version"`
	UpdatedAt core.Time `cbor:"7,keyasint,omitempty" json:"updatedAt"`
}

var (
	modelProviders     = ledger.NewTable[string, ModelProvider]("model-provider")
	modelPrices        = ledger.NewTable[string, ModelPrice]("model-price")
	meshModelProviders = ledger.NewMeshTable[string, ModelProvider]("model-provider")
	meshModelPrices    = ledger.NewMeshTable[string, ModelPrice]("model-price")
)

// SaveModelProvider is the payload of model_provider.save, for the command's company or,
// without one, for the mesh; nil keeps a field. A new address drops the key: whoever changes
// the address must know the key.
type SaveModelProvider struct {
	ID       string        `cbor:"1,keyasint"`
	Create   bool          `cbor:"2,keyasint,omitempty"`
	Name     *string       `cbor:"3,keyasint,omitempty"`
	Kind     *ModelKind    `cbor:"4,keyasint,omitempty"`
	BaseURL  *string       `cbor:"5,keyasint,omitempty"`
	Locked   *string       `cbor:"6,keyasint,omitempty"` // the sealed key; "" removes it
	Secret   *string       `cbor:"7,keyasint,omitempty"` // "" removes the reference
	Models   *[]ModelRoute `cbor:"8,keyasint,omitempty"`
	Labels   *[]string     `cbor:"9,keyasint,omitempty"`
	Priority *int          `cbor:"10,keyasint,omitempty"`
	Free     *bool         `cbor:"11,keyasint,omitempty"`
	Disabled *bool         `cbor:"12,keyasint,omitempty"`

	Key *string `cbor:"-"` // in the clear, never part of a command; the API seals it into Locked
}

// Sealed seals the upstream's key.
func (p SaveModelProvider) Sealed(seal conceal.SealFunc) (any, error) {
	if p.Key == nil {
		return p, nil
	}
	p.Locked = new(string)
	var err error
	if *p.Key != "" {
		*p.Locked, err = seal(p.ID, ModelKeyPath, *p.Key)
	}
	p.Key = nil
	return p, err
}

// DropModelProvider is the payload of model_provider.remove.
type DropModelProvider struct {
	ID string `cbor:"1,keyasint"`
}

// SetModelPrice is the payload of model_price.set, for the command's company or, without one,
// for the mesh.
type SetModelPrice struct {
	Price ModelPrice `cbor:"1,keyasint"`
}

// DropModelPrice is the payload of model_price.remove.
type DropModelPrice struct {
	Model string `cbor:"1,keyasint"`
}

const (
	KindModelProviderSave   = "model_provider.save"
	KindModelProviderRemove = "model_provider.remove"
	KindModelPriceSet       = "model_price.set"
	KindModelPriceRemove    = "model_price.remove"
)

var modelKinds = []company.Kind{
	{Name: KindModelProviderSave, From: company.FromBoard, Traits: company.LeadersOnly, Weight: company.Weights.SetUp,
		Do: ledger.Typed(saveModelProvider)},
	{Name: KindModelProviderRemove, From: company.FromBoard, Traits: company.LeadersOnly, Weight: company.Weights.SetUp,
		Do: ledger.Typed(removeModelProvider)},
	{Name: KindModelPriceSet, From: company.FromBoard, Traits: company.LeadersOnly, Weight: company.Weights.SetUp,
		Do: ledger.Typed(setModelPrice)},
	{Name: KindModelPriceRemove, From: company.FromBoard, Traits: company.LeadersOnly, Weight: company.Weights.SetUp,
		Do: ledger.Typed(removeModelPrice)},
}

// UpstreamsOf returns the upstreams that calls of a company may go to: its own first, then
// those of the mesh.
func UpstreamsOf(tx *ledger.Tx, company ledger.CompanyID) []ModelProvider {
	return append(ModelProvidersOf(tx, company), ModelProvidersOf(tx, "")...)
}

// ModelProvidersOf returns the upstreams of a company, or with "" of the mesh, by
// name.
func ModelProvidersOf(tx *ledger.Tx, company ledger.CompanyID) []ModelProvider {
	out := []ModelProvider{}
	rows := meshModelProviders.All(tx)
	if company != "" {
		rows = modelProviders.All(tx, company)
	}
	for _, p := range rows {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b ModelProvider) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// ModelProviderOf returns an upstream of a company, or with "" of the mesh.
func ModelProviderOf(tx *ledger.Tx, company ledger.CompanyID, id string) (ModelProvider, bool) {
	switch {
	case !core.IsID(id):
		return ModelProvider{}, false
	case company == "":
		return meshModelProviders.Get(tx, id)
	}
	return modelProviders.Get(tx, company, id)
}

// ModelPricesOf returns the prices that were set for a company, or with "" for
// the mesh, by model.
func ModelPricesOf(tx *ledger.Tx, company ledger.CompanyID) []ModelPrice {
	out := []ModelPrice{}
	rows := meshModelPrices.All(tx)
	if company != "" {
		rows = modelPrices.All(tx, company)
	}
	for _, p := range rows {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b ModelPrice) int { return cmp.Compare(a.Model, b.Model) })
	return out
}

func putModelProvider(tx *ledger.Tx, p ModelProvider) {
	if p.Company == "" {
		meshModelProviders.Put(tx, p.ID, p)
	} else {
		modelProviders.Put(tx, ledger.CompanyID(p.Company), p.ID, p)
	}
}

func errNoModelProvider() error {
	return ledger.Refuse(ledger.NotFound, nil, "Model provider not found")
}

func saveModelProvider(c *ledger.Context, p SaveModelProvider) (any, error) {
	of, now := c.Cmd.Company, core.TimeOf(c.Now)
	row, ok := ModelProviderOf(c.Tx, of, p.ID)
	action := "model_provider.updated"
	switch {
	case p.Create:
		if err := core.CheckNewID(c.Tx, p.ID); err != nil {
			return nil, err
		}
		if ok {
			return nil, ledger.Refuse(ledger.Conflict, nil, "ID %s is in use", p.ID)
		}
		if len(ModelProvidersOf(c.Tx, of)) >= MaxModelProviders {
			return nil, ledger.Refuse(ledger.Conflict, nil, "There are %d model providers already", MaxModelProviders)
		}
		action = "model_provider.created"
		row = ModelProvider{ID: p.ID, Company: core.Null[ledger.CompanyID](of), CreatedAt: now}
		if p.Kind != nil {
			row.Free = p.Kind.Local()
		}
	case !ok:
		return nil, errNoModelProvider()
	}
	was := row.BaseURL
	core.Assign(&row.Name, p.Name)
	core.Assign(&row.Kind, p.Kind)
	core.Assign(&row.BaseURL, p.BaseURL)
	core.Assign(&row.Models, p.Models)
	core.Assign(&row.Labels, p.Labels)
	core.Assign(&row.Priority, p.Priority)
	core.Assign(&row.Free, p.Free)
	core.Assign(&row.Disabled, p.Disabled)
	row.BaseURL = strings.TrimRight(cmp.Or(row.BaseURL, row.Kind.DefaultURL()), "/")
	if was != "" && was != row.BaseURL {
		row.Sealed, row.Secret = "", ""
	}
	if p.Locked != nil {
		row.Sealed, row.Secret = *p.Locked, ""
	}
	if p.Secret != nil {
		if row.Secret = core.NullText(*p.Secret); *p.Secret != "" {
			row.Sealed = ""
		}
	}
	row.UpdatedAt = now
	if err := row.check(c.Tx); err != nil {
		return nil, err
	}
	putModelProvider(c.Tx, row)
	c.Record(ledger.Change{Action: action, EntityType: "model_provider", EntityID: row.ID,
		Details: core.Object{}.Str("name", row.Name).Str("kind", string(row.Kind)).Str("baseUrl", row.BaseURL).
			Bool("hasKey", row.HasKey()).Close()})
	return row, nil
}

// check refuses an invalid upstream, or one with the name of another.
func (p ModelProvider) check(tx *ledger.Tx) error {
	bad := func(format string, args ...any) error { return ledger.Refuse(ledger.Invalid, nil, format, args...) }
	switch {
	case !modelProviderName(p.Name):
		return bad("name: 1 to 64 lower case letters, digits, dots, dashes and underscores are needed, and neither " +
			"\"local\" nor \"tier\"")
	case !slices.Contains(ModelKinds, p.Kind):
		return bad("kind: unknown kind of model provider: %s", p.Kind)
	case p.BaseURL == "":
		return bad("baseUrl: a URL is needed for this kind")
	case len(p.Models) > MaxModelRoutes || len(p.Labels) > MaxModelLabels:
		return bad("models: at most %d are possible, labels: at most %d", MaxModelRoutes, MaxModelLabels)
	case p.Priority < -1000 || p.Priority > 1000:
		return bad("priority: -1000 to 1000")
	case len(p.Sealed) > 2*MaxModelKey:
		return bad("apiKey: at most %d bytes are possible", MaxModelKey)
	}
	u, err := url.Parse(p.BaseURL)
	if err != nil || len(p.BaseURL) > 500 || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" {
		return bad("baseUrl: an http or https URL without user, query and fragment is needed")
	}
	for _, m := range p.Models {
		if !modelPattern(m.Name) || m.As != "" && (!modelPattern(m.As) || strings.HasSuffix(m.As, "*")) {
			return bad("models: %q is no name of a model", m.Name)
		}
	}
	for _, l := range p.Labels {
		if l == "" || len(l) > 128 || strings.ContainsFunc(l, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return bad("labels: %q is no label", l)
		}
	}
	if p.Secret != "" {
		if shared, _ := company.Ask.Known(tx, ledger.CompanyID(p.Company), string(p.Secret)); p.Company == "" || !shared {
			return ledger.Refuse(ledger.NotFound, nil, "Secret not found")
		}
	}
	for _, o := range ModelProvidersOf(tx, ledger.CompanyID(p.Company)) {
		if o.ID != p.ID && o.Name == p.Name {
			return ledger.Refuse(ledger.Conflict, nil, "There is a model provider called %s already", p.Name)
		}
	}
	return nil
}

func modelProviderName(s string) bool {
	if s == "" || len(s) > 64 || s == "local" || s == "tier" {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_'
	})
}

// modelPattern reports whether s can be a model name: printable ASCII without spaces, "*"
// only at its end.
func modelPattern(s string) bool {
	if s == "" || len(s) > MaxModelName {
		return false
	}
	if n := strings.IndexByte(s, '*'); n >= 0 && n != len(s)-1 {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

func removeModelProvider(c *ledger.Context, p DropModelProvider) (any, error) {
	row, ok := ModelProviderOf(c.Tx, c.Cmd.Company, p.ID)
	if !ok {
		return nil, errNoModelProvider()
	}
	if row.Company == "" {
		meshModelProviders.Delete(c.Tx, row.ID)
	} else {
		modelProviders.Delete(c.Tx, ledger.CompanyID(row.Company), row.ID)
	}
	c.Record(ledger.Change{Action: "model_provider.removed", EntityType: "model_provider", EntityID: row.ID,
		Details: core.Object{}.Str("name", row.Name).Close()})
	return nil, nil
}

func modelPriceID(model string) string { return core.DerivedID("model-price", model) }

func modelPriceOf(tx *ledger.Tx, company ledger.CompanyID, model string) (ModelPrice, bool) {
	if company == "" {
		return meshModelPrices.Get(tx, modelPriceID(model))
	}
	return modelPrices.Get(tx, company, modelPriceID(model))
}

func setModelPrice(c *ledger.Context, p SetModelPrice) (any, error) {
	of, row := c.Cmd.Company, p.Price
	if !modelPattern(row.Model) {
		return nil, ledger.Refuse(ledger.Invalid, nil, "model: %q is not the name of a model", row.Model)
	}
	if min(row.Input, row.Output, row.CacheRead, row.CacheWrite) < 0 || max(row.Input, row.Output, row.CacheRead,
		row.CacheWrite) > MaxModelPrice {
		return nil, ledger.Refuse(ledger.Invalid, nil, "A price is 0 to %d micro-cents for a million tokens",
			int64(MaxModelPrice))
	}
	old, ok := modelPriceOf(c.Tx, of, row.Model)
	if !ok && len(ModelPricesOf(c.Tx, of)) >= MaxModelPrices {
		return nil, ledger.Refuse(ledger.Conflict, nil, "There are %d prices already", MaxModelPrices)
	}
	row.Version, row.UpdatedAt = old.Version+1, core.TimeOf(c.Now)
	if id := modelPriceID(row.Model); of == "" {
		meshModelPrices.Put(c.Tx, id, row)
	} else {
		modelPrices.Put(c.Tx, of, id, row)
	}
	c.Record(ledger.Change{Action: "model_price.set", EntityType: "model_price", EntityID: row.Model,
		Details: core.Object{}.Int("input", row.Input).Int("output", row.Output).Int("cacheRead", row.CacheRead).
			Int("cacheWrite", row.CacheWrite).Int("version", int64(row.Version)).Close()})
	return row, nil
}

func removeModelPrice(c *ledger.Context, p DropModelPrice) (any, error) {
	of := c.Cmd.Company
	if _, ok := modelPriceOf(c.Tx, of, p.Model); !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Model price not found")
	}
	if id := modelPriceID(p.Model); of == "" {
		meshModelPrices.Delete(c.Tx, id)
	} else {
		modelPrices.Delete(c.Tx, of, id)
	}
	c.Record(ledger.Change{Action: "model_price.removed", EntityType: "model_price", EntityID: p.Model})
	return nil, nil
}
