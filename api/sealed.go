package api

import (
	"encoding/base64"

	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// sealKey returns the mesh's present data key. A node without it (an observer,
// an untrusted one) can not take secrets in.
func (s *Server) sealKey() (identity.DataKey, error) {
	if s.cfg.DataKeys != nil {
		if keys := s.cfg.DataKeys(); len(keys) > 0 && keys[0] != (identity.DataKey{}) {
			return keys[0], nil
		}
	}
	return identity.DataKey{}, Unavailable("This node does not hold the mesh's data key and can not take secrets; ask another node")
}

// sealed returns a payload with its secrets sealed: none is part of a command
// in the clear.
func (rc *Request) sealed(of string, payload any) (any, error) {
	p, ok := payload.(conceal.Sealable)
	if !ok {
		return payload, nil
	}
	s := rc.server
	return p.Sealed(func(owner, path, plain string) (string, error) {
		if len(plain) > conceal.MaxSecretValue {
			return "", Invalid("%s is longer than %d bytes", path, conceal.MaxSecretValue)
		}
		key, err := s.sealKey()
		if err != nil {
			return "", err
		}
		return base64.StdEncoding.EncodeToString(identity.Seal(key, conceal.ValueAAD(string(s.cfg.Mesh), of, owner, path), []byte(plain))), nil
	})
}

// sealSecret seals a version of a secret.
func (rc *Request) sealSecret(of, id string, version int, value string) ([]byte, error) {
	key, err := rc.server.sealKey()
	if err != nil {
		return nil, err
	}
	return identity.Seal(key, conceal.SecretAAD(string(rc.server.cfg.Mesh), of, id, version), []byte(value)), nil
}

// refusedWith reports whether err is a refusal of a code.
func refusedWith(err error, code ledger.Code) bool {
	r, ok := err.(*ledger.Refusal)
	return ok && r.Code == code
}
