// Package secret is the routes about secrets of companies and of users.
package secret

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/ledger"
)

// rotateTries bounds how often a rotation is retried when another one came first. Each
// retry seals the value again.
const rotateTries = 4

// newSecret is the body that creates a secret.
type newSecret struct {
	Name            string                   `json:"name" minLength:"1" maxLength:"500" maxBytes:"500"`
	Key             string                   `json:"key,omitempty" minLength:"1" maxLength:"120" pattern:"^[a-zA-Z0-9_.-]+$"`
	Provider        string                   `json:"provider,omitempty" enum:"local_encrypted,aws_secrets_manager,gcp_secret_manager,vault"`
	ProviderConfig  api.Opt[string]          `json:"providerConfigId" format:"uuid"`
	ManagedMode     string                   `json:"managedMode,omitempty" enum:"paperclip_managed,external_reference"`
	Value           api.Opt[string]          `json:"value" minLength:"1" maxLength:"65536" maxBytes:"65536"`
	Description     api.Opt[string]          `json:"description" maxLength:"50000" maxBytes:"50000"`
	ExternalRef     api.Opt[string]          `json:"externalRef" maxLength:"2048"`
	Metadata        api.Opt[json.RawMessage] `json:"providerMetadata" maxBytes:"4096"`
	ProviderVersion api.Opt[string]          `json:"providerVersionRef" maxLength:"512"`
}

// patchSecret is the body that changes the metadata of a secret.
type patchSecret struct {
	Name           *string                  `json:"name,omitempty" minLength:"1" maxLength:"500" maxBytes:"500" nullable:"false"`
	Key            *string                  `json:"key,omitempty" minLength:"1" maxLength:"120" pattern:"^[a-zA-Z0-9_.-]+$" nullable:"false"`
	Status         *string                  `json:"status,omitempty" enum:"active,disabled,archived,deleted" nullable:"false"`
	ProviderConfig api.Opt[string]          `json:"providerConfigId" format:"uuid"`
	Description    api.Opt[string]          `json:"description" maxLength:"50000" maxBytes:"50000"`
	ExternalRef    api.Opt[string]          `json:"externalRef" maxLength:"2048"`
	Metadata       api.Opt[json.RawMessage] `json:"providerMetadata" maxBytes:"4096"`
}

// rotateBody is the body that gives a secret a new value.
type rotateBody struct {
	Value           api.Opt[string] `json:"value" minLength:"1" maxLength:"65536" maxBytes:"65536"`
	ExternalRef     api.Opt[string] `json:"externalRef" maxLength:"2048"`
	ProviderVersion api.Opt[string] `json:"providerVersionRef" maxLength:"512"`
	ProviderConfig  api.Opt[string] `json:"providerConfigId" format:"uuid"`
}

// A secretRow is a secret as answers show it, always without its value.
type secretRow struct {
	secret.Secret
	Provider       string          `json:"provider"`
	ManagedMode    string          `json:"managedMode"`
	ExternalRef    *string         `json:"externalRef"`
	ProviderConfig *string         `json:"providerConfigId"`
	Metadata       json.RawMessage `json:"providerMetadata"`
	DeletedAt      core.Time       `json:"deletedAt"`
}

// A secretListItem is a secret in a list, with the number of variables that reference
// it.
type secretListItem struct {
	secretRow
	References int `json:"referenceCount"`
}

func showSecret(s secret.Secret) secretRow {
	row := secretRow{Secret: s, Provider: secret.LocalProvider, ManagedMode: "paperclip_managed",
		Metadata: api.RawJSON(s.Metadata)}
	row.Secret.Metadata = nil
	return row
}

type secretProvider struct {
	ID             string `json:"id"`
	Label          string `json:"label"`
	NeedsRef       bool   `json:"requiresExternalRef"`
	Managed        bool   `json:"supportsManagedValues"`
	External       bool   `json:"supportsExternalReferences"`
	ExternalWrites bool   `json:"supportsExternalValueWrites,omitempty"`
	Configured     bool   `json:"configured"`
}

// secretProviders lists the mesh's own store, and providers that clients know but that
// are not supported.
var secretProviders = []secretProvider{
	{ID: secret.LocalProvider, Label: "Sealed by the mesh (default)", Managed: true, Configured: true},
	{ID: "aws_secrets_manager", Label: "AWS Secrets Manager", Managed: true, External: true, ExternalWrites: true},
	{ID: "gcp_secret_manager", Label: "GCP Secret Manager", NeedsRef: true, External: true},
	{ID: "vault", Label: "HashiCorp Vault", NeedsRef: true, External: true},
}

type providerHealth struct {
	Provider string   `json:"provider"`
	Status   string   `json:"status"` // ok or error
	Message  string   `json:"message"`
	Warnings []string `json:"warnings"`
}

type secretUsage struct {
	Secret   string                 `json:"secretId"`
	Bindings []secret.SecretBinding `json:"bindings"`
}

// A secretName is a secret in the catalog of what variables can reference.
type secretName struct {
	ID          string        `json:"id"`
	Key         string        `json:"key"`
	Name        string        `json:"name"`
	Status      string        `json:"status"`
	Description core.NullText `json:"description"`
	Latest      int           `json:"latestVersion"`
}

func SecretRoutes() []api.Route {
	const tag, all, one = "secrets", "/api/companies/{companyId}/secrets", "/api/secrets/{id}"
	return []api.Route{
		{Method: "GET", Path: "/api/companies/{companyId}/secret-providers", Tag: tag, Summary: "List who can keep secrets",
			Who: api.Board, Out: []secretProvider{}, Handle: api.OfCompany(secretProviders)},
		{Method: "GET", Path: "/api/companies/{companyId}/secret-providers/health", Tag: tag,
			Summary: "Tell whether this node can take secrets", Who: api.Board, Out: providersHealth{}, Handle: secretHealth},
		{Method: "GET", Path: "/api/companies/{companyId}/secret-provider-configs", Tag: tag,
			Summary: "List the settings of other keepers of secrets; there are none", Who: api.Board, Out: []struct{}{},
			Handle: api.OfCompany([]struct{}{})},
		api.List(api.Route{Path: all, Tag: tag, Summary: "List secrets, without values", Who: api.Board}, secretsOf),
		api.List(api.Route{Path: all + "/catalog", Tag: tag, Summary: "List what variables may refer to", Who: api.Board},
			secretNamesOf),
		{Method: "POST", Path: all, Tag: tag, Summary: "Create a secret", Who: api.Board, In: newSecret{}, Out: secretRow{},
			Status: 201, Handle: createSecret},
		{Method: "PATCH", Path: one, Tag: tag, Summary: "Change a secret's name, key or status", Who: api.Board,
			In: patchSecret{}, Out: secretRow{}, Handle: updateSecret},
		api.Tell(api.Route{Path: one, Tag: tag, Summary: "Delete a secret with all its versions", Who: api.Board},
			secret.KindSecretDelete, api.Located(pathSecret, placeOf), dropSecret),
		{Method: "POST", Path: one + "/rotate", Tag: tag, Summary: "Give a secret a new value", Who: api.Board,
			In: rotateBody{}, Out: secretRow{}, Handle: rotating(findSecret)},
		api.Show(api.Route{Path: one + "/usage", Tag: tag, Summary: "List the variables that refer to a secret",
			Who: api.Board}, pathSecret, usageOf),
		api.Read(api.Route{Path: one + "/access-events", Tag: tag,
			Summary: "List which runs used a secret, the newest first", Who: api.Board,
			Query: []api.Param{{Name: "limit", Type: "integer", Doc: "at most so many"}, {Name: "offset", Type: "integer",
				Doc: "without the first so many"}}}, listSecretAccesses),
	}
}

// providerOnly refuses options that only an external provider supports. named are the
// body's references to a value at one.
func providerOnly(provider, mode string, named ...api.Opt[string]) error {
	if provider != "" && provider != secret.LocalProvider {
		return api.Unprocessable("Secret provider is not configured: "+provider, nil)
	}
	if mode == "external_reference" || slices.ContainsFunc(named, func(o api.Opt[string]) bool { return o.Or("") != "" }) {
		return api.Unprocessable("Provider "+secret.LocalProvider+" does not support external references", nil)
	}
	return nil
}

// managed is [providerOnly] for a body with a value, which it must have.
func managed(value api.Opt[string], provider, mode string, named ...api.Opt[string]) error {
	if err := providerOnly(provider, mode, named...); err != nil {
		return err
	}
	if value.Or("") == "" {
		return api.Unprocessable("Managed secrets require a value", nil)
	}
	return nil
}

// providersHealth are the keepers of secrets, and how they stand.
type providersHealth struct {
	Providers []providerHealth `json:"providers"`
}

func secretHealth(rc *api.Request) (api.Response, error) {
	h := providerHealth{Provider: secret.LocalProvider, Status: "ok", Message: "This node holds the mesh's data key",
		Warnings: []string{}}
	if _, err := rc.Server.SealKey(); err != nil {
		h.Status, h.Message = "error", err.Error()
	}
	return api.OfCompany(providersHealth{[]providerHealth{h}})(rc)
}

func secretsOf(tx *ledger.Tx, of ledger.CompanyID) []secretListItem {
	count := map[string]int{}
	for _, b := range secret.SecretUsage(tx, of) {
		count[b.Secret]++
	}
	out := []secretListItem{}
	for _, s := range secret.SecretsOf(tx, of, "company", "") {
		out = append(out, secretListItem{showSecret(s), count[s.ID]})
	}
	return out
}

func secretNamesOf(tx *ledger.Tx, of ledger.CompanyID) []secretName {
	out := []secretName{}
	for _, s := range secret.SecretsOf(tx, of, "company", "") {
		out = append(out, secretName{s.ID, s.Key, s.Name, s.Status, s.Description, s.Latest})
	}
	return out
}

func createSecret(rc *api.Request) (api.Response, error) {
	in, err := api.Body[newSecret](rc)
	if err == nil {
		err = managed(in.Value, in.Provider, in.ManagedMode, in.ExternalRef, in.ProviderConfig, in.ProviderVersion)
	}
	if err != nil {
		return api.Response{}, err
	}
	of := api.CompanyID(rc)
	if err := api.InCompany(rc, func(*ledger.Tx, entity.Company) error { return nil }); err != nil {
		return api.Response{}, err
	}
	p := secret.SaveSecret{ID: api.NewID(), Name: in.Name, Key: in.Key, Description: in.Description.Or(""),
		Metadata: in.Metadata.Or(nil)}
	if p.Sealed, err = rc.SealSecret(of, p.ID, 1, in.Value.Value); err != nil {
		return api.Response{}, err
	}
	s, err := api.Do[secret.Secret](rc, secret.KindSecretCreate, of, p)
	return api.OK(showSecret(s)), err
}

// secretIn returns the secret that a path value names. Only the user sees a user's own
// secret.
func secretIn(tx *ledger.Tx, rc *api.Request, name string) (secret.Secret, error) {
	s, ok := secret.SecretByID(tx, strings.ToLower(rc.Path(name)))
	if !ok || !api.Seen(tx, rc, s.Company) || s.Scope == "user" && string(s.Owner) != rc.Actor.ID {
		return s, api.NotFound("Secret not found")
	}
	return s, nil
}

func pathSecret(tx *ledger.Tx, rc *api.Request) (secret.Secret, error) { return secretIn(tx, rc, "id") }

func findSecret(rc *api.Request) (s secret.Secret, err error) {
	err = rc.View(func(tx *ledger.Tx) (err error) { s, err = pathSecret(tx, rc); return err })
	return s, err
}

func placeOf(s secret.Secret) (ledger.CompanyID, string) { return s.Company, s.ID }

func dropSecret(_ *api.Request, id string) secret.DropSecret { return secret.DropSecret{ID: id} }

func updateSecret(rc *api.Request) (api.Response, error) {
	in, err := api.Body[patchSecret](rc)
	if err != nil {
		return api.Response{}, err
	}
	if err := providerOnly("", "", in.ExternalRef, in.ProviderConfig); err != nil {
		return api.Response{}, err
	}
	s, err := findSecret(rc)
	if err != nil {
		return api.Response{}, err
	}
	return changeSecret(rc, s, in)
}

// changeSecret changes a secret; the status "deleted" deletes it.
func changeSecret(rc *api.Request, s secret.Secret, in patchSecret) (api.Response, error) {
	if in.Status != nil && *in.Status == "deleted" {
		_, err := rc.Submit(secret.KindSecretDelete, s.Company, secret.DropSecret{ID: s.ID})
		row := showSecret(s)
		row.Status, row.DeletedAt = "deleted", core.TimeOf(rc.Now())
		return api.OK(row), err
	}
	s, err := api.Do[secret.Secret](rc, secret.KindSecretUpdate, s.Company, secret.PatchSecret{ID: s.ID, Name: in.Name,
		Key: in.Key, Status: in.Status,
		Description: api.TextOf(in.Description), Metadata: api.RawOf(in.Metadata)})
	return api.OK(showSecret(s)), err
}

// rotating gives a new value to the secret that find finds.
func rotating(find func(*api.Request) (secret.Secret, error)) func(*api.Request) (api.Response, error) {
	return func(rc *api.Request) (api.Response, error) {
		in, err := api.Body[rotateBody](rc)
		if err == nil {
			err = managed(in.Value, "", "", in.ExternalRef, in.ProviderConfig, in.ProviderVersion)
		}
		if err != nil {
			return api.Response{}, err
		}
		s, err := find(rc)
		if err != nil {
			return api.Response{}, err
		}
		s, err = rotate(rc, s, in.Value.Value)
		return api.OK(showSecret(s)), err
	}
}

// rotate stores a new value of s as the version after the latest, also when that changes
// meanwhile.
func rotate(rc *api.Request, s secret.Secret, value string) (secret.Secret, error) {
	for try := 1; ; try++ {
		p := secret.RotateSecret{ID: s.ID, Version: s.Latest + 1}
		var err error
		if p.Sealed, err = rc.SealSecret(s.Company, s.ID, p.Version, value); err != nil {
			return s, err
		}
		next, err := api.Do[secret.Secret](rc, secret.KindSecretRotate, s.Company, p)
		if !api.RefusedWith(err, ledger.Conflict) || try == rotateTries || rc.HTTP.Header.Get(api.HeaderIdempotency) != "" {
			return next, err
		}
		if err := rc.View(func(tx *ledger.Tx) error {
			again, ok := secret.SecretOf(tx, s.Company, s.ID)
			if !ok {
				return api.NotFound("Secret not found")
			}
			s = again
			return nil
		}); err != nil {
			return s, err
		}
	}
}

func usageOf(tx *ledger.Tx, s secret.Secret) secretUsage {
	return secretUsage{s.ID, slices.DeleteFunc(secret.SecretUsage(tx, s.Company),
		func(b secret.SecretBinding) bool { return b.Secret != s.ID })}
}

func listSecretAccesses(tx *ledger.Tx, rc *api.Request) ([]secret.SecretAccess, error) {
	s, err := pathSecret(tx, rc)
	if err != nil {
		return nil, err
	}
	return api.Page(rc, secret.SecretAccessesOf(tx, s), 100, secret.MaxSecretAccesses)
}
