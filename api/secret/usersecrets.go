package secret

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/ledger"
)

// newDefinition is the body that defines a secret with a value per user.
type newDefinition struct {
	Key            string                   `json:"key" minLength:"1" maxLength:"120" pattern:"^[a-zA-Z0-9_.-]+$"`
	Name           string                   `json:"name" minLength:"1" maxLength:"160"`
	Status         *string                  `json:"status,omitempty" enum:"active,disabled,archived" nullable:"false"`
	Provider       string                   `json:"provider,omitempty" enum:"local_encrypted,aws_secrets_manager,gcp_secret_manager,vault"`
	ProviderConfig api.Opt[string]          `json:"providerConfigId" format:"uuid"`
	ManagedMode    string                   `json:"managedMode,omitempty" enum:"paperclip_managed,external_reference"`
	Metadata       api.Opt[json.RawMessage] `json:"providerMetadata" maxBytes:"4096"`
	Guidance       api.Opt[string]          `json:"usageGuidance" maxLength:"1000"`
}

// patchDefinition is the body that changes a definition.
type patchDefinition struct {
	Name           *string                  `json:"name,omitempty" minLength:"1" maxLength:"160" nullable:"false"`
	Status         *string                  `json:"status,omitempty" enum:"active,disabled,archived,deleted" nullable:"false"`
	ProviderConfig api.Opt[string]          `json:"providerConfigId" format:"uuid"`
	Metadata       api.Opt[json.RawMessage] `json:"providerMetadata" maxBytes:"4096"`
	Guidance       api.Opt[string]          `json:"usageGuidance" maxLength:"1000"`
}

// newUserSecret is the body that sets the caller's value for a definition.
type newUserSecret struct {
	Key             string          `json:"definitionKey,omitempty" minLength:"1" maxLength:"120" pattern:"^[a-zA-Z0-9_.-]+$"`
	Definition      api.Opt[string] `json:"definitionId" format:"uuid"`
	Value           api.Opt[string] `json:"value" minLength:"1" maxLength:"65536"`
	ExternalRef     api.Opt[string] `json:"externalRef" maxLength:"2048"`
	ProviderVersion api.Opt[string] `json:"providerVersionRef" maxLength:"512"`
	ProviderConfig  api.Opt[string] `json:"providerConfigId" format:"uuid"`
}

// patchUserSecret is the body that changes the caller's value or its status.
type patchUserSecret struct {
	Status          *string         `json:"status,omitempty" enum:"active,disabled,archived,deleted" nullable:"false"`
	Value           api.Opt[string] `json:"value" minLength:"1" maxLength:"65536" maxBytes:"65536" nullable:"false"`
	ExternalRef     api.Opt[string] `json:"externalRef" maxLength:"2048"`
	ProviderVersion api.Opt[string] `json:"providerVersionRef" maxLength:"512"`
	ProviderConfig  api.Opt[string] `json:"providerConfigId" format:"uuid"`
}

// A definitionRow is a definition as answers show it.
type definitionRow struct {
	secret.UserSecretDefinition
	Provider       string          `json:"provider"`
	ManagedMode    string          `json:"managedMode"`
	ProviderConfig *string         `json:"providerConfigId"`
	Metadata       json.RawMessage `json:"providerMetadata"`
}

// A coverage says whether the caller has a value for a definition.
type coverage struct {
	Definition string   `json:"definitionId"`
	Total      int      `json:"totalUsers"`
	Covered    int      `json:"coveredUsers"`
	Missing    []string `json:"missingUserIds"`
}

func showDefinition(d secret.UserSecretDefinition) definitionRow {
	return definitionRow{UserSecretDefinition: d, Provider: secret.LocalProvider, ManagedMode: "paperclip_managed",
		Metadata: api.RawJSON(nil)}
}

func UserSecretRoutes() []api.Route {
	const tag, all, mine = "secrets", "/api/companies/{companyId}/user-secret-definitions",
		"/api/companies/{companyId}/me/user-secrets"
	drop := api.Tell(api.Route{Path: all + "/{definitionId}", Tag: tag,
		Summary: "Delete a definition that nobody has a value for", Who: api.Board}, secret.KindUserSecretUndefine,
		api.InPath("definitionId"), dropSecret)
	return []api.Route{
		api.List(api.Route{Path: all, Tag: tag, Summary: "List the secrets that each user has a value for", Who: api.Board},
			definitionsOf),
		{Method: "POST", Path: all, Tag: tag, Summary: "Define a secret that each user has a value for", Who: api.Board,
			In: newDefinition{}, Out: definitionRow{}, Status: 201, Handle: createDefinition},
		{Method: "PATCH", Path: all + "/{definitionId}", Tag: tag, Summary: "Change such a definition", Who: api.Board,
			In: patchDefinition{}, Out: definitionRow{},
			Handle: func(rc *api.Request) (api.Response, error) { return updateDefinition(rc, drop.Handle) }},
		drop,
		api.Read(api.Route{Path: all + "/{definitionId}/coverage", Tag: tag,
			Summary: "Tell whether the user has a value for a definition", Who: api.Board}, readCoverage),
		api.Read(api.Route{Path: mine, Tag: tag, Summary: "List the user's own secrets, without values", Who: api.Board},
			listMySecrets),
		{Method: "POST", Path: mine, Tag: tag, Summary: "Give the user's value for a definition", Who: api.Board,
			In: newUserSecret{}, Out: secretRow{}, Status: 201, Handle: createMySecret},
		{Method: "PATCH", Path: mine + "/{secretId}", Tag: tag, Summary: "Change the user's value or its status",
			Who: api.Board, In: patchUserSecret{}, Out: secretRow{}, Handle: updateMySecret},
		api.Tell(api.Route{Path: mine + "/{secretId}", Tag: tag, Summary: "Delete the user's value", Who: api.Board},
			secret.KindSecretDelete, api.Located(mySecretIn, placeOf), dropSecret),
		{Method: "POST", Path: mine + "/{secretId}/rotate", Tag: tag, Summary: "Give the user's secret a new value",
			Who: api.Board, In: rotateBody{}, Out: secretRow{}, Handle: rotating(mySecret)},
	}
}

func definitionsOf(tx *ledger.Tx, of ledger.CompanyID) []definitionRow {
	out := []definitionRow{}
	for _, d := range secret.UserSecretDefinitionsOf(tx, of) {
		out = append(out, showDefinition(d))
	}
	return out
}

// definedHere refuses a definition for an external provider, and its provider settings,
// which are not stored.
func definedHere(provider, mode string, config api.Opt[string], metadata api.Opt[json.RawMessage]) error {
	if m := metadata.Or(nil); len(m) > 0 && !bytes.Equal(bytes.Join(bytes.Fields(m), nil), []byte("{}")) {
		return api.Unprocessable("providerMetadata: provider "+secret.LocalProvider+" keeps none of a definition", nil)
	}
	return providerOnly(provider, mode, config)
}

func createDefinition(rc *api.Request) (api.Response, error) {
	in, err := api.Body[newDefinition](rc)
	if err == nil {
		err = definedHere(in.Provider, in.ManagedMode, in.ProviderConfig, in.Metadata)
	}
	if err != nil {
		return api.Response{}, err
	}
	d, err := api.Do[secret.UserSecretDefinition](rc, secret.KindUserSecretDefine, api.CompanyID(rc),
		secret.SaveUserSecretDefinition{ID: api.NewID(), Key: in.Key, Name: &in.Name,
			Status: in.Status, Guidance: api.TextOf(in.Guidance)})
	return api.OK(showDefinition(d)), err
}

// updateDefinition changes a definition; the status "deleted" deletes it.
func updateDefinition(rc *api.Request, drop func(*api.Request) (api.Response, error)) (api.Response, error) {
	in, err := api.Body[patchDefinition](rc)
	if err == nil {
		err = definedHere("", "", in.ProviderConfig, in.Metadata)
	}
	if err != nil {
		return api.Response{}, err
	}
	if in.Status != nil && *in.Status == "deleted" {
		return drop(rc)
	}
	d, err := api.Do[secret.UserSecretDefinition](rc, secret.KindUserSecretRedefine, api.CompanyID(rc),
		secret.SaveUserSecretDefinition{ID: strings.ToLower(rc.Path("definitionId")),
			Name: in.Name, Status: in.Status, Guidance: api.TextOf(in.Guidance)})
	return api.OK(showDefinition(d)), err
}

func readCoverage(tx *ledger.Tx, rc *api.Request) (c coverage, err error) {
	row, err := api.CompanyIn(tx, rc)
	if err != nil {
		return c, err
	}
	d, ok := secret.UserSecretDefinitionOf(tx, row.ID, api.PathID(rc, "definitionId"))
	if !ok {
		return c, api.NotFound("User secret definition not found")
	}
	c = coverage{Definition: d.ID, Total: 1, Missing: []string{}}
	if _, ok := secret.UserSecret(tx, row.ID, d.ID, rc.Actor.ID); ok {
		c.Covered = 1
	} else {
		c.Missing = append(c.Missing, rc.Actor.ID)
	}
	return c, nil
}

func listMySecrets(tx *ledger.Tx, rc *api.Request) ([]secretRow, error) {
	row, err := api.CompanyIn(tx, rc)
	if err != nil {
		return nil, err
	}
	out := []secretRow{}
	for _, s := range secret.SecretsOf(tx, row.ID, "user", rc.Actor.ID) {
		out = append(out, showSecret(s))
	}
	return out, nil
}

func createMySecret(rc *api.Request) (api.Response, error) {
	in, err := api.Body[newUserSecret](rc)
	if err == nil {
		err = managed(in.Value, "", "", in.ExternalRef, in.ProviderConfig, in.ProviderVersion)
	}
	if err != nil {
		return api.Response{}, err
	}
	of := api.CompanyID(rc)
	p := secret.SaveSecret{ID: api.NewID(), Definition: api.BodyID(in.Definition)}
	err = api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
		if d, ok := secret.UserSecretDefinitionByKey(tx, row.ID, in.Key); ok && p.Definition == "" {
			p.Definition = d.ID
		}
		if p.Definition == "" {
			return api.NotFound("User secret definition not found")
		}
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	if p.Sealed, err = rc.SealSecret(of, p.ID, 1, in.Value.Value); err != nil {
		return api.Response{}, err
	}
	s, err := api.Do[secret.Secret](rc, secret.KindSecretCreate, of, p)
	return api.OK(showSecret(s)), err
}

// mySecretIn returns the caller's own secret that the path names.
func mySecretIn(tx *ledger.Tx, rc *api.Request) (secret.Secret, error) {
	row, err := api.CompanyIn(tx, rc)
	if err != nil {
		return secret.Secret{}, err
	}
	s, err := secretIn(tx, rc, "secretId")
	if err == nil && (s.Company != row.ID || s.Scope != "user") {
		err = api.NotFound("Secret not found")
	}
	return s, err
}

func mySecret(rc *api.Request) (s secret.Secret, err error) {
	err = rc.View(func(tx *ledger.Tx) (err error) { s, err = mySecretIn(tx, rc); return err })
	return s, err
}

func updateMySecret(rc *api.Request) (api.Response, error) {
	in, err := api.Body[patchUserSecret](rc)
	if err == nil {
		err = providerOnly("", "", in.ExternalRef, in.ProviderConfig, in.ProviderVersion)
	}
	if err != nil {
		return api.Response{}, err
	}
	s, err := mySecret(rc)
	if err != nil {
		return api.Response{}, err
	}
	if v := in.Value.Or(""); v != "" {
		if s, err = rotate(rc, s, v); err != nil || in.Status == nil {
			return api.OK(showSecret(s)), err
		}
	}
	return changeSecret(rc, s, patchSecret{Status: in.Status})
}
