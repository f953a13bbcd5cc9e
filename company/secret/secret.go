package secret

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Bounds of secrets.
const (
	// MaxSecrets bounds the secrets of a company, those of its users included: lists
	// return all of them.
	MaxSecrets = 2_000
	// MaxSecretVersions bounds the versions that are kept of a secret. Beyond it, the
	// oldest is deleted.
	MaxSecretVersions = 50
	// MaxSecretAccesses bounds the access events that are kept of a secret.
	MaxSecretAccesses = 500
)

// LocalProvider is the provider of secrets that the mesh itself stores, sealed with its data
// key. The name is the contract's.
const LocalProvider = "local_encrypted"

// A Secret is a named value that is never shown. Its versions are separate rows, which hold
// the sealed value: the state never contains the plain text.
type Secret struct {
	ID          string           `cbor:"1,keyasint" json:"id"`
	Company     ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Scope       string           `cbor:"3,keyasint" json:"scope"` // "company" or "user"
	Owner       core.NullText    `cbor:"4,keyasint,omitempty" json:"ownerUserId"`
	Definition  core.NullText    `cbor:"5,keyasint,omitempty" json:"userSecretDefinitionId"`
	Key         string           `cbor:"6,keyasint" json:"key"`
	Name        string           `cbor:"7,keyasint" json:"name"`
	Status      string           `cbor:"8,keyasint" json:"status"` // active, disabled, archived
	Latest      int              `cbor:"9,keyasint" json:"latestVersion"`
	Description core.NullText    `cbor:"10,keyasint,omitempty" json:"description"`
	ResolvedAt  core.Time        `cbor:"11,keyasint,omitempty" json:"lastResolvedAt"`
	RotatedAt   core.Time        `cbor:"12,keyasint" json:"lastRotatedAt"`
	ByAgent     core.NullText    `cbor:"13,keyasint,omitempty" json:"createdByAgentId"`
	ByUser      core.NullText    `cbor:"14,keyasint,omitempty" json:"createdByUserId"`
	CreatedAt   core.Time        `cbor:"15,keyasint" json:"createdAt"`
	UpdatedAt   core.Time        `cbor:"16,keyasint" json:"updatedAt"`
	// Accesses counts the access events ever written. Oldest is the first version that is
	// still kept.
	Accesses int             `cbor:"17,keyasint,omitempty" json:"-"`
	Oldest   int             `cbor:"18,keyasint" json:"-"`
	Metadata json.RawMessage `cbor:"19,keyasint,omitempty" json:"-"`
}

// Clone returns a copy that shares no memory with s.
func (s Secret) Clone() Secret {
	s.Metadata = slices.Clone(s.Metadata)
	return s
}

// A SecretVersion is one value of a secret, sealed under [SecretAAD].
type SecretVersion struct {
	Secret    string    `cbor:"1,keyasint"`
	Version   int       `cbor:"2,keyasint"`
	Sealed    []byte    `cbor:"3,keyasint"`
	CreatedAt core.Time `cbor:"4,keyasint"`
}

// A SecretAccess is one use of a secret by a run.
type SecretAccess struct {
	ID        string           `cbor:"1,keyasint" json:"id"`
	Company   ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Secret    string           `cbor:"3,keyasint" json:"secretId"`
	Version   int              `cbor:"4,keyasint,omitempty" json:"version"`
	Provider  string           `cbor:"5,keyasint" json:"provider"`
	ActorType string           `cbor:"6,keyasint" json:"actorType"`
	Actor     string           `cbor:"7,keyasint" json:"actorId"`
	Consumer  string           `cbor:"8,keyasint" json:"consumerType"`
	ConsumeID string           `cbor:"9,keyasint" json:"consumerId"`
	Path      string           `cbor:"10,keyasint" json:"configPath"`
	Issue     core.NullText    `cbor:"11,keyasint,omitempty" json:"issueId"`
	Run       core.NullText    `cbor:"12,keyasint,omitempty" json:"heartbeatRunId"`
	Plugin    core.NullText    `cbor:"13,keyasint,omitempty" json:"pluginId"`
	Outcome   string           `cbor:"14,keyasint" json:"outcome"` // success or failure
	ErrorCode core.NullText    `cbor:"15,keyasint,omitempty" json:"errorCode"`
	Node      string           `cbor:"16,keyasint" json:"nodeId"`
	CreatedAt core.Time        `cbor:"17,keyasint" json:"createdAt"`
}

// Versions are keyed by <secret>.<version>, accesses by <secret>.<number>. The indexes hold
// the names and keys of the company's own secrets, which are unique.
var (
	Secrets = core.Owned(ledger.NewTable[string, Secret]("secret").
		Beside(ledger.Indexed(secretsByName, func(s *Secret) string { return s.ofCompany(url.PathEscape(s.Name)) })).
		Beside(ledger.Indexed(secretsByKey, func(s *Secret) string { return s.ofCompany(strings.ToLower(s.Key)) })).
		Beside(ledger.Indexed(userSecretIndex, func(s *Secret) string {
			if s.Scope == "company" {
				return ""
			}
			return string(s.Definition) + "." + url.PathEscape(string(s.Owner))
		})))
	secretVersions  = ledger.NewTable[string, SecretVersion]("secret-version")
	secretAccesses  = ledger.NewTable[string, SecretAccess]("secret-access")
	secretsByName   = ledger.NewIndex[string, string]("secret-name")
	secretsByKey    = ledger.NewIndex[string, string]("secret-key")
	userSecretIndex = ledger.NewIndex[string, string]("secret-user") // under <definition>.<user>
)

func secretPart(id string, n int) string { return id + "." + ledger.Order(uint64(n)) }

// SaveSecret is the payload of secret.create. Sealed is the first version's
// value under [SecretAAD].
type SaveSecret struct {
	ID          string          `cbor:"1,keyasint"`
	Name        string          `cbor:"2,keyasint"`
	Key         string          `cbor:"3,keyasint,omitempty"` // derived from the name if empty
	Description string          `cbor:"4,keyasint,omitempty"`
	Sealed      []byte          `cbor:"5,keyasint"`
	Metadata    json.RawMessage `cbor:"6,keyasint,omitempty"`
	// Definition makes it the acting user's value for this definition.
	Definition string `cbor:"7,keyasint,omitempty"`
}

// RotateSecret is the payload of secret.rotate: the value of the next version.
type RotateSecret struct {
	ID      string `cbor:"1,keyasint"`
	Version int    `cbor:"2,keyasint"`
	Sealed  []byte `cbor:"3,keyasint"`
}

// PatchSecret is the payload of secret.update. A nil field keeps the value.
type PatchSecret struct {
	ID          string          `cbor:"1,keyasint"`
	Name        *string         `cbor:"2,keyasint,omitempty"`
	Key         *string         `cbor:"3,keyasint,omitempty"`
	Status      *string         `cbor:"4,keyasint,omitempty"`
	Description *string         `cbor:"5,keyasint,omitempty"`
	Metadata    json.RawMessage `cbor:"6,keyasint,omitempty"`
}

// DropSecret is the payload of secret.delete.
type DropSecret struct {
	ID string `cbor:"1,keyasint"`
}

// UseSecrets is the payload of secret.access, by which the executing node reports which
// secrets it resolved for a run, or could not resolve.
type UseSecrets struct {
	Run  string      `cbor:"1,keyasint"`
	Uses []SecretUse `cbor:"2,keyasint"`
}

// A SecretUse is one reference that a node tried to resolve. Error is a code, "" on success.
type SecretUse struct {
	Secret  string `cbor:"1,keyasint"`
	Version int    `cbor:"2,keyasint,omitempty"`
	Path    string `cbor:"3,keyasint"`
	Error   string `cbor:"4,keyasint,omitempty"`
}

const (
	KindSecretCreate = "secret.create"
	KindSecretRotate = "secret.rotate"
	KindSecretUpdate = "secret.update"
	KindSecretDelete = "secret.delete"
	KindSecretAccess = "secret.access"
	KindSecretReseal = "secret.reseal"
)

var secretKinds = []company.Kind{
	{Name: KindSecretCreate, From: company.FromBoard, Weight: company.Weights.Sealing, Do: ledger.Typed(createSecret)},
	{Name: KindSecretRotate, From: company.FromBoard, Weight: company.Weights.Sealing,
		Do: ledger.Typed(HandleRotateSecret)},
	{Name: KindSecretUpdate, From: company.FromBoard, Weight: company.Weights.Sealing, Do: ledger.Typed(updateSecret)},
	{Name: KindSecretDelete, From: company.FromBoard, Weight: company.Weights.Erase, Do: ledger.Typed(deleteSecret)},
	{Name: KindSecretAccess, From: company.FromNode, Weight: company.Weights.ByNodes, Do: ledger.Typed(accessSecrets)},
	{Name: KindSecretReseal, From: company.FromNode, Weight: company.Weights.ByNodes, Do: ledger.Typed(Reseal)},
}

func errNoSecret() error { return ledger.Refuse(ledger.NotFound, nil, "Secret not found") }

// SecretOf returns a secret of company.
func SecretOf(tx *ledger.Tx, company ledger.CompanyID, id string) (Secret, bool) {
	if !core.IsID(id) {
		return Secret{}, false
	}
	return Secrets.Get(tx, company, id)
}

// SecretByID returns the secret with an ID, of any company.
func SecretByID(tx *ledger.Tx, id string) (Secret, bool) {
	company := core.OwnerOf(tx, id)
	if company == "" {
		return Secret{}, false
	}
	return Secrets.Get(tx, company, id)
}

// SecretsOf returns secrets of a company, newest first: the company's own, or with scope
// "user" those of owner.
func SecretsOf(tx *ledger.Tx, company ledger.CompanyID, scope, owner string) []Secret {
	out := []Secret{}
	for _, s := range Secrets.All(tx, company) {
		if s.Scope == scope && (scope == "company" || string(s.Owner) == owner) {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b Secret) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	return out
}

// SecretVersionOf returns a version of a secret; 0 is the latest.
func SecretVersionOf(tx *ledger.Tx, s Secret, version int) (SecretVersion, bool) {
	if version == 0 {
		version = s.Latest
	}
	if version < 1 {
		return SecretVersion{}, false
	}
	return secretVersions.Get(tx, s.Company, secretPart(s.ID, version))
}

// SecretAccessesOf returns the uses of a secret, the newest first.
func SecretAccessesOf(tx *ledger.Tx, s Secret) []SecretAccess {
	out := []SecretAccess{}
	for _, v := range tx.Prefix(secretAccesses.Key(s.Company, s.ID+".")) {
		out = append(out, core.DecodeRow[SecretAccess](v))
	}
	slices.Reverse(out)
	return out
}

// SecretKey derives a key from a name: in lower case, with a dash for each character that is
// no letter, digit, dot, dash or underscore.
func SecretKey(name string) string {
	var b strings.Builder
	for _, c := range []byte(strings.ToLower(name)) {
		if conceal.KeyByte(c) {
			b.WriteByte(c)
		} else if s := b.String(); s != "" && s[len(s)-1] != '-' {
			b.WriteByte('-')
		}
	}
	key := strings.Trim(b.String(), "-")
	return key[:min(len(key), conceal.MaxSecretKey)]
}

func (s Secret) check() error {
	switch {
	case strings.TrimSpace(s.Name) == "":
		return ledger.Refuse(ledger.Invalid, nil, "A secret needs a name")
	case len(s.Name) > entity.MaxName || len(s.Description) > entity.MaxText/4 || len(s.Metadata) > company.MaxNote:
		return ledger.Refuse(ledger.TooLarge, nil, "The secret's text is too long")
	case !slices.Contains([]string{"active", "disabled", "archived"}, s.Status):
		return ledger.Refuse(ledger.Invalid, nil, "Unknown status of a secret: %s", s.Status)
	}
	return conceal.CheckSecretKey(s.Key)
}

// claim adds the name and key of a company's secret to the indexes. Both must be free.
func (s Secret) claim(tx *ledger.Tx, old Secret) error {
	if s.Scope != "company" {
		return nil
	}
	name, key := url.PathEscape(s.Name), strings.ToLower(s.Key)
	if old.ID == "" || old.Name != s.Name {
		for range secretsByName.IDs(tx, s.Company, name, false) {
			return ledger.Refuse(ledger.Conflict, nil, "Secret already exists: %s", s.Name)
		}
	}
	if old.ID == "" || strings.ToLower(old.Key) != key {
		for range secretsByKey.IDs(tx, s.Company, key, false) {
			return ledger.Refuse(ledger.Conflict, nil, "Secret key already exists: %s", s.Key)
		}
	}
	return nil
}

// ofCompany returns value for a company's secret, "" for a user's.
func (s *Secret) ofCompany(value string) string {
	if s.Scope != "company" {
		return ""
	}
	return value
}

func createSecret(c *ledger.Context, p SaveSecret) (any, error) {
	row, err := company.Present(c)
	if err != nil {
		return nil, err
	}
	if err := core.CheckNewID(c.Tx, p.ID); err != nil {
		return nil, err
	}
	now := core.TimeOf(c.Now)
	s := Secret{ID: p.ID, Company: row.ID, Scope: "company", Key: cmp.Or(p.Key, SecretKey(p.Name), p.ID), Name: p.Name,
		Status: "active", Latest: 1, Oldest: 1,
		Description: core.NullText(p.Description), RotatedAt: now, CreatedAt: now, UpdatedAt: now}
	if core.IsAgent(c) {
		s.ByAgent = core.NullText(c.Cmd.Actor.ID)
	} else {
		s.ByUser = core.NullText(c.Cmd.Actor.ID)
	}
	if s.Metadata, err = core.CheckObject("providerMetadata", p.Metadata, company.MaxNote); err != nil {
		return nil, err
	}
	if p.Definition != "" {
		d, ok := UserSecretDefinitionOf(c.Tx, row.ID, p.Definition)
		if !ok || d.Status != "active" {
			return nil, ledger.Refuse(ledger.NotFound, nil, "User secret definition not found")
		}
		s.Scope, s.Owner, s.Definition, s.Key, s.Name = "user", core.NullText(c.Cmd.Actor.ID), core.NullText(d.ID),
			d.Key, d.Name
		if _, ok := UserSecret(c.Tx, row.ID, d.ID, c.Cmd.Actor.ID); ok {
			return nil, ledger.Refuse(ledger.Conflict, nil, "Secret already exists: %s", d.Name)
		}
	}
	if err := cmp.Or(s.check(), conceal.CheckSealed(p.Sealed), s.claim(c.Tx, Secret{}),
		core.HasRoom(Secrets.All(c.Tx, row.ID), MaxSecrets, "secrets")); err != nil {
		return nil, err
	}
	Secrets.Put(c.Tx, row.ID, s.ID, s)
	secretVersions.Put(c.Tx, row.ID, secretPart(s.ID, 1), SecretVersion{Secret: s.ID, Version: 1, Sealed: p.Sealed,
		CreatedAt: now})
	c.Record(ledger.Change{Action: "secret.created", EntityType: "secret", EntityID: s.ID,
		Details: core.Object{}.Str("name", s.Name).Str("provider", LocalProvider).Str("scope", s.Scope).Close()})
	return s, nil
}

// secretFor returns the command's secret. A user's own secret is returned only to that user.
func secretFor(c *ledger.Context, id string) (Secret, error) {
	s, ok := SecretOf(c.Tx, c.Cmd.Company, id)
	if !ok || s.Scope == "user" && string(s.Owner) != c.Cmd.Actor.ID {
		return Secret{}, errNoSecret()
	}
	return s, nil
}

func HandleRotateSecret(c *ledger.Context, p RotateSecret) (any, error) {
	s, err := secretFor(c, p.ID)
	if err != nil {
		return nil, err
	}
	if p.Version != s.Latest+1 {
		return nil, ledger.Refuse(ledger.Conflict, core.Object{}.Int("latestVersion", int64(s.Latest)).Close(),
			"Secret was rotated by someone else")
	}
	if err := conceal.CheckSealed(p.Sealed); err != nil {
		return nil, err
	}
	now := core.TimeOf(c.Now)
	s.Latest, s.RotatedAt, s.UpdatedAt = p.Version, now, now
	secretVersions.Put(c.Tx, s.Company, secretPart(s.ID, s.Latest), SecretVersion{Secret: s.ID, Version: s.Latest,
		Sealed: p.Sealed, CreatedAt: now})
	for ; s.Latest-s.Oldest >= MaxSecretVersions; s.Oldest++ {
		secretVersions.Delete(c.Tx, s.Company, secretPart(s.ID, s.Oldest))
	}
	Secrets.Put(c.Tx, s.Company, s.ID, s)
	c.Record(ledger.Change{Action: "secret.rotated", EntityType: "secret", EntityID: s.ID,
		Details: core.Object{}.Str("name", s.Name).Int("version", int64(s.Latest)).Close()})
	return s, nil
}

func updateSecret(c *ledger.Context, p PatchSecret) (any, error) {
	s, err := secretFor(c, p.ID)
	if err != nil {
		return nil, err
	}
	old := s
	core.Assign(&s.Name, p.Name)
	core.Assign(&s.Key, p.Key)
	core.Assign(&s.Status, p.Status)
	core.AssignText(&s.Description, p.Description)
	if len(p.Metadata) > 0 {
		if s.Metadata, err = core.CheckObject("providerMetadata", p.Metadata, company.MaxNote); err != nil {
			return nil, err
		}
	}
	s.UpdatedAt = core.TimeOf(c.Now)
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := s.claim(c.Tx, old); err != nil {
		return nil, err
	}
	Secrets.Put(c.Tx, s.Company, s.ID, s)
	c.Record(ledger.Change{Action: "secret.updated", EntityType: "secret", EntityID: s.ID,
		Details: core.Object{}.Str("name", s.Name).Str("status", s.Status).Close()})
	return s, nil
}

// deleteSecret deletes a secret with all its versions. References to it stay; runs that need
// it fail.
func deleteSecret(c *ledger.Context, p DropSecret) (any, error) {
	s, err := secretFor(c, p.ID)
	if err != nil {
		return nil, err
	}
	for v := s.Oldest; v <= s.Latest; v++ {
		secretVersions.Delete(c.Tx, s.Company, secretPart(s.ID, v))
	}
	for n := max(s.Accesses-MaxSecretAccesses, 0); n < s.Accesses; n++ {
		secretAccesses.Delete(c.Tx, s.Company, secretPart(s.ID, n))
	}
	Secrets.Delete(c.Tx, s.Company, s.ID)
	c.Record(ledger.Change{Action: "secret.deleted", EntityType: "secret", EntityID: s.ID,
		Details: core.Object{}.Str("name", s.Name).Close()})
	return nil, nil
}

// accessSecrets records which secrets a node resolved for a run. Only the node on which the
// run was placed may report them.
func accessSecrets(c *ledger.Context, p UseSecrets) (any, error) {
	r, ok := entity.RunTable.Get(c.Tx, c.Cmd.Company, p.Run)
	switch {
	case !ok || r.Node != string(c.Origin):
		return nil, ledger.Refuse(ledger.NotFound, nil, "Run not found")
	case len(p.Uses) == 0 || len(p.Uses) > conceal.MaxRunSecrets:
		return nil, ledger.Refuse(ledger.Invalid, nil, "1 to %d uses are needed", conceal.MaxRunSecrets)
	}
	now := core.TimeOf(c.Now)
	names, failed := []string{}, 0
	for i, u := range p.Uses {
		if len(u.Path) > entity.MaxName || len(u.Error) > 100 {
			return nil, ledger.Refuse(ledger.Invalid, nil, "path or error is too long")
		}
		if u.Error != "" {
			failed++
		}
		s, ok := SecretOf(c.Tx, r.Company, u.Secret)
		if !ok {
			continue
		}
		a := SecretAccess{ID: core.DerivedID("secret-access", s.ID, ledger.Order(c.Height), strconv.Itoa(i)),
			Company: r.Company, Secret: s.ID, Version: u.Version,
			Provider: LocalProvider, ActorType: "agent", Actor: r.Agent, Consumer: "agent", ConsumeID: r.Agent, Path: u.Path,
			Issue: core.NullText(r.Context.IssueID), Run: core.NullText(r.ID), Outcome: "success", Node: string(c.Origin),
			CreatedAt: now}
		if u.Error != "" {
			a.Outcome, a.ErrorCode = "failure", core.NullText(u.Error)
		} else {
			s.ResolvedAt = now
		}
		secretAccesses.Put(c.Tx, r.Company, secretPart(s.ID, s.Accesses), a)
		if s.Accesses++; s.Accesses > MaxSecretAccesses {
			secretAccesses.Delete(c.Tx, r.Company, secretPart(s.ID, s.Accesses-MaxSecretAccesses-1))
		}
		Secrets.Put(c.Tx, r.Company, s.ID, s)
		if len(names) < 10 && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	c.Record(ledger.Change{Action: "secret.accessed", EntityType: "heartbeat_run", EntityID: r.ID,
		Details: core.Object{}.Str("agentId", r.Agent).List("names", names).Int("uses", int64(len(p.Uses))).
			Int("failed", int64(failed)).Close()})
	return nil, nil
}

func Reseal(c *ledger.Context, p conceal.Reseal) (any, error) {
	if len(p.Old) != len(p.New) || len(p.Old) == 0 || len(p.Old) > conceal.MaxRunSecrets {
		return nil, ledger.Refuse(ledger.Invalid, nil, "old and new values must be lists of the same length")
	}
	of := c.Cmd.Company
	switch p.Type {
	case "secret":
		v, ok := secretVersions.Get(c.Tx, of, secretPart(p.ID, p.Version))
		if !ok || base64.StdEncoding.EncodeToString(v.Sealed) != p.Old[0] {
			return nil, errNoSecret()
		}
		var err error
		if v.Sealed, err = p.Sealed(); err != nil {
			return nil, err
		}
		secretVersions.Put(c.Tx, of, secretPart(p.ID, p.Version), v)
	default:
		ok, err := company.ResealRow(c, p)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			return nil, ledger.Refuse(ledger.Invalid, nil, "nothing sealed in %q", p.Type)
		}
	}
	c.Record(ledger.Change{Action: "secret.resealed", EntityType: p.Type, EntityID: p.ID})
	return nil, nil
}

// SecretVersions yields all versions of all secrets of company.
func SecretVersions(tx *ledger.Tx, company ledger.CompanyID) iter.Seq[SecretVersion] {
	return func(yield func(SecretVersion) bool) {
		for _, v := range secretVersions.All(tx, company) {
			if !yield(v) {
				return
			}
		}
	}
}
