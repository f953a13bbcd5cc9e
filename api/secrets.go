package api

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/ledger"
)

// rotateTries bounds how often a rotation is sealed anew because another one
// came between.
const rotateTries = 4

// newSecret is the body that creates a secret.
type newSecret struct {
	Name            string               `json:"name" minLength:"1" maxLength:"500" maxBytes:"500"`
	Key             string               `json:"key,omitempty" minLength:"1" maxLength:"120" pattern:"^[a-zA-Z0-9_.-]+$"`
	Provider        string               `json:"provider,omitempty" enum:"local_encrypted,aws_secrets_manager,gcp_secret_manager,vault"`
	ProviderConfig  Opt[string]          `json:"providerConfigId" format:"uuid"`
	ManagedMode     string               `json:"managedMode,omitempty" enum:"paperclip_managed,external_reference"`
	Value           Opt[string]          `json:"value" minLength:"1" maxLength:"65536" maxBytes:"65536"`
	Description     Opt[string]          `json:"description" maxLength:"50000" maxBytes:"50000"`
	ExternalRef     Opt[string]          `json:"externalRef" maxLength:"2048"`
	Metadata        Opt[json.RawMessage] `json:"providerMetadata" maxBytes:"4096"`
	ProviderVersion Opt[string]          `json:"providerVersionRef" maxLength:"512"`
}

// patchSecret is the body that changes what is known of a secret, not its value.
type patchSecret struct {
	Name           *string              `json:"name,omitempty" minLength:"1" maxLength:"500" maxBytes:"500" nullable:"false"`
	Key            *string              `json:"key,omitempty" minLength:"1" maxLength:"120" pattern:"^[a-zA-Z0-9_.-]+$" nullable:"false"`
	Status         *string              `json:"status,omitempty" enum:"active,disabled,archived,deleted" nullable:"false"`
	ProviderConfig Opt[string]          `json:"providerConfigId" format:"uuid"`
	Description    Opt[string]          `json:"description" maxLength:"50000" maxBytes:"50000"`
	ExternalRef    Opt[string]          `json:"externalRef" maxLength:"2048"`
	Metadata       Opt[json.RawMessage] `json:"providerMetadata" maxBytes:"4096"`
}

// rotateBody is the body that gives a secret a new value.
type rotateBody struct {
	Value           Opt[string] `json:"value" minLength:"1" maxLength:"65536" maxBytes:"65536"`
	ExternalRef     Opt[string] `json:"externalRef" maxLength:"2048"`
	ProviderVersion Opt[string] `json:"providerVersionRef" maxLength:"512"`
	ProviderConfig  Opt[string] `json:"providerConfigId" format:"uuid"`
}

// A secretRow is a secret as it is shown: never with its value.
type secretRow struct {
	secret.Secret
	Provider       string          `json:"provider"`
	ManagedMode    string          `json:"managedMode"`
	ExternalRef    *string         `json:"externalRef"`
	ProviderConfig *string         `json:"providerConfigId"`
	Metadata       json.RawMessage `json:"providerMetadata"`
	DeletedAt      core.Time       `json:"deletedAt"`
}

// A secretListItem is a secret in a list, with how many variables refer to it.
type secretListItem struct {
	secretRow
	References int `json:"referenceCount"`
}

func showSecret(s secret.Secret) secretRow {
	row := secretRow{Secret: s, Provider: secret.LocalProvider, ManagedMode: "paperclip_managed", Metadata: rawJSON(s.Metadata)}
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

// secretProviders: the mesh keeps secrets itself; the others are named because
// clients know them.
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

// A secretName is a secret in the catalog: what may be referred to.
type secretName struct {
	ID          string        `json:"id"`
	Key         string        `json:"key"`
	Name        string        `json:"name"`
	Status      string        `json:"status"`
	Description core.NullText `json:"description"`
	Latest      int           `json:"latestVersion"`
}

func secretRoutes() []Route {
	const tag, all, one = "secrets", "/api/companies/{companyId}/secrets", "/api/secrets/{id}"
	return []Route{
		{Method: "GET", Path: "/api/companies/{companyId}/secret-providers", Tag: tag, Summary: "List who can keep secrets", Who: Board, Out: []secretProvider{}, Handle: ofCompany(secretProviders)},
		{Method: "GET", Path: "/api/companies/{companyId}/secret-providers/health", Tag: tag, Summary: "Tell whether this node can take secrets", Who: Board, Handle: secretHealth},
		{Method: "GET", Path: "/api/companies/{companyId}/secret-provider-configs", Tag: tag, Summary: "List the settings of other keepers of secrets; there are none", Who: Board, Out: []struct{}{}, Handle: ofCompany([]struct{}{})},
		{Method: "GET", Path: all, Tag: tag, Summary: "List secrets, without values", Who: Board, Out: []secretListItem{}, Handle: listSecrets},
		{Method: "GET", Path: all + "/catalog", Tag: tag, Summary: "List what variables may refer to", Who: Board, Out: []secretName{}, Handle: listSecretNames},
		{Method: "POST", Path: all, Tag: tag, Summary: "Create a secret", Who: Board, In: newSecret{}, Out: secretRow{}, Status: 201, Handle: createSecret},
		{Method: "PATCH", Path: one, Tag: tag, Summary: "Change a secret's name, key or status", Who: Board, In: patchSecret{}, Out: secretRow{}, Handle: updateSecret},
		{Method: "DELETE", Path: one, Tag: tag, Summary: "Delete a secret with all its versions", Who: Board, Out: okay{}, Handle: deleteSecret},
		{Method: "POST", Path: one + "/rotate", Tag: tag, Summary: "Give a secret a new value", Who: Board, In: rotateBody{}, Out: secretRow{}, Handle: rotateSecret},
		{Method: "GET", Path: one + "/usage", Tag: tag, Summary: "List the variables that refer to a secret", Who: Board, Out: secretUsage{}, Handle: readSecretUsage},
		{Method: "GET", Path: one + "/access-events", Tag: tag, Summary: "List which runs used a secret, the newest first", Who: Board, Out: []secret.SecretAccess{}, Handle: listSecretAccesses,
			Query: []Param{{Name: "limit", Type: "integer", Doc: "at most so many"}, {Name: "offset", Type: "integer", Doc: "without the first so many"}}},
	}
}

// providerOnly refuses what only another keeper of secrets could do; named is what
// the body says of where such a one has the value.
func providerOnly(provider, mode string, named ...Opt[string]) error {
	if provider != "" && provider != secret.LocalProvider {
		return Unprocessable("Secret provider is not configured: "+provider, nil)
	}
	if mode == "external_reference" || slices.ContainsFunc(named, func(o Opt[string]) bool { return o.Or("") != "" }) {
		return Unprocessable("Provider "+secret.LocalProvider+" does not support external references", nil)
	}
	return nil
}

func secretHealth(rc *Request) (Response, error) {
	h := providerHealth{Provider: secret.LocalProvider, Status: "ok", Message: "This node holds the mesh's data key", Warnings: []string{}}
	if _, err := rc.server.sealKey(); err != nil {
		h.Status, h.Message = "error", err.Error()
	}
	return ofCompany(map[string]any{"providers": []providerHealth{h}})(rc)
}

func listSecrets(rc *Request) (Response, error) {
	out := []secretListItem{}
	err := inCompany(rc, func(tx *ledger.Tx, row company.Company) error {
		count := map[string]int{}
		for _, b := range secret.SecretUsage(tx, row.ID) {
			count[b.Secret]++
		}
		for _, s := range secret.SecretsOf(tx, row.ID, "company", "") {
			out = append(out, secretListItem{showSecret(s), count[s.ID]})
		}
		return nil
	})
	return OK(out), err
}

func listSecretNames(rc *Request) (Response, error) {
	out := []secretName{}
	err := inCompany(rc, func(tx *ledger.Tx, row company.Company) error {
		for _, s := range secret.SecretsOf(tx, row.ID, "company", "") {
			out = append(out, secretName{s.ID, s.Key, s.Name, s.Status, s.Description, s.Latest})
		}
		return nil
	})
	return OK(out), err
}

func createSecret(rc *Request) (Response, error) {
	in, err := Body[newSecret](rc)
	if err != nil {
		return Response{}, err
	}
	if err := providerOnly(in.Provider, in.ManagedMode, in.ExternalRef, in.ProviderConfig, in.ProviderVersion); err != nil {
		return Response{}, err
	}
	if in.Value.Or("") == "" {
		return Response{}, Unprocessable("Managed secrets require a value", nil)
	}
	of := companyID(rc)
	if err := inCompany(rc, func(*ledger.Tx, company.Company) error { return nil }); err != nil {
		return Response{}, err
	}
	p := secret.SaveSecret{ID: NewID(), Name: in.Name, Key: in.Key, Description: in.Description.Or(""), Metadata: in.Metadata.Or(nil)}
	if p.Sealed, err = rc.sealSecret(of, p.ID, 1, in.Value.Value); err != nil {
		return Response{}, err
	}
	s, err := Do[secret.Secret](rc, secret.KindSecretCreate, of, p)
	return OK(showSecret(s)), err
}

// secretIn returns the secret that a path value names. A user's own is for
// that user.
func secretIn(tx *ledger.Tx, rc *Request, name string) (secret.Secret, error) {
	s, ok := secret.SecretByID(tx, strings.ToLower(rc.Path(name)))
	if !ok || !seen(tx, rc, s.Company) || s.Scope == "user" && string(s.Owner) != rc.Actor.ID {
		return s, NotFound("Secret not found")
	}
	return s, nil
}

func findSecret(rc *Request) (s secret.Secret, err error) {
	err = rc.View(func(tx *ledger.Tx) (err error) { s, err = secretIn(tx, rc, "id"); return err })
	return s, err
}

func updateSecret(rc *Request) (Response, error) {
	in, err := Body[patchSecret](rc)
	if err != nil {
		return Response{}, err
	}
	if err := providerOnly("", "", in.ExternalRef, in.ProviderConfig); err != nil {
		return Response{}, err
	}
	s, err := findSecret(rc)
	if err != nil {
		return Response{}, err
	}
	return changeSecret(rc, s, in)
}

// changeSecret changes a secret; the status "deleted" deletes it.
func changeSecret(rc *Request, s secret.Secret, in patchSecret) (Response, error) {
	if in.Status != nil && *in.Status == "deleted" {
		_, err := rc.Submit(secret.KindSecretDelete, s.Company, secret.DropSecret{ID: s.ID})
		row := showSecret(s)
		row.Status, row.DeletedAt = "deleted", core.TimeOf(rc.Now())
		return OK(row), err
	}
	s, err := Do[secret.Secret](rc, secret.KindSecretUpdate, s.Company, secret.PatchSecret{ID: s.ID, Name: in.Name, Key: in.Key, Status: in.Status,
		Description: textOf(in.Description), Metadata: rawOf(in.Metadata)})
	return OK(showSecret(s)), err
}

func deleteSecret(rc *Request) (Response, error) {
	s, err := findSecret(rc)
	if err != nil {
		return Response{}, err
	}
	_, err = rc.Submit(secret.KindSecretDelete, s.Company, secret.DropSecret{ID: s.ID})
	return OK(okay{true}), err
}

func rotateSecret(rc *Request) (Response, error) {
	in, err := Body[rotateBody](rc)
	if err != nil {
		return Response{}, err
	}
	if err := providerOnly("", "", in.ExternalRef, in.ProviderConfig, in.ProviderVersion); err != nil {
		return Response{}, err
	}
	if in.Value.Or("") == "" {
		return Response{}, Unprocessable("Managed secrets require a value", nil)
	}
	s, err := findSecret(rc)
	if err != nil {
		return Response{}, err
	}
	s, err = rotate(rc, s, in.Value.Value)
	return OK(showSecret(s)), err
}

// rotate gives s another value: the version after the latest, whichever that is
// by then.
func rotate(rc *Request, s secret.Secret, value string) (secret.Secret, error) {
	for try := 1; ; try++ {
		p := secret.RotateSecret{ID: s.ID, Version: s.Latest + 1}
		var err error
		if p.Sealed, err = rc.sealSecret(s.Company, s.ID, p.Version, value); err != nil {
			return s, err
		}
		next, err := Do[secret.Secret](rc, secret.KindSecretRotate, s.Company, p)
		if !refusedWith(err, ledger.Conflict) || try == rotateTries || rc.HTTP.Header.Get(headerIdempotency) != "" {
			return next, err
		}
		if err := rc.View(func(tx *ledger.Tx) error {
			again, ok := secret.SecretOf(tx, s.Company, s.ID)
			if !ok {
				return NotFound("Secret not found")
			}
			s = again
			return nil
		}); err != nil {
			return s, err
		}
	}
}

func readSecretUsage(rc *Request) (r Response, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		s, err := secretIn(tx, rc, "id")
		if err != nil {
			return err
		}
		list := slices.DeleteFunc(secret.SecretUsage(tx, s.Company), func(b secret.SecretBinding) bool { return b.Secret != s.ID })
		r = OK(secretUsage{s.ID, list})
		return nil
	})
	return r, err
}

func listSecretAccesses(rc *Request) (r Response, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		s, err := secretIn(tx, rc, "id")
		if err != nil {
			return err
		}
		list, err := Page(rc, secret.SecretAccessesOf(tx, s), 100, secret.MaxSecretAccesses)
		r = OK(list)
		return err
	})
	return r, err
}
