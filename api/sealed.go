package api

import (
	"encoding/base64"

	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// SealKey returns the mesh's current data key. A node without it (an observer, an untrusted
// one) can not accept secrets.
func (s *Server) SealKey() (identity.DataKey, error) {
	if s.Cfg.DataKeys != nil {
		if keys := s.Cfg.DataKeys(); len(keys) > 0 && keys[0] != (identity.DataKey{}) {
			return keys[0], nil
		}
	}
	return identity.DataKey{}, Unavailable("This node does not hold the mesh's data key and can not take secrets; ask " +
		"another node")
}

// Sealed returns a payload with its secrets sealed: no command has one in the clear.
func (rc *Request) Sealed(of ledger.CompanyID, payload any) (any, error) {
	p, ok := payload.(conceal.Sealable)
	if !ok {
		return payload, nil
	}
	s := rc.Server
	return p.Sealed(func(owner, path, plain string) (string, error) {
		if len(plain) > conceal.MaxSecretValue {
			return "", Invalid("%s is longer than %d bytes", path, conceal.MaxSecretValue)
		}
		key, err := s.SealKey()
		if err != nil {
			return "", err
		}
		return base64.StdEncoding.EncodeToString(identity.Seal(key, conceal.ValueAAD(string(s.Cfg.Mesh), of, owner, path),
			[]byte(plain))), nil
	})
}

// SealSecret seals a version of a secret.
func (rc *Request) SealSecret(of ledger.CompanyID, id string, version int, value string) ([]byte, error) {
	key, err := rc.Server.SealKey()
	if err != nil {
		return nil, err
	}
	return identity.Seal(key, conceal.SecretAAD(string(rc.Server.Cfg.Mesh), of, id, version), []byte(value)), nil
}

// RefusedWith reports whether err is a refusal with a code.
func RefusedWith(err error, code ledger.Code) bool {
	r, ok := err.(*ledger.Refusal)
	return ok && r.Code == code
}
