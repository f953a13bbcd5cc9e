package transfer

import (
	"cmp"
	"maps"
	"mime"
	"path"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/company/portable"
)

// carry adds an asset's content to the package, once.
func (e *exporter) carry(a file.Asset) {
	if slices.ContainsFunc(e.m.Blobs, func(b portable.Blob) bool { return b.SHA256 == a.SHA256 }) {
		return
	}
	e.m.Blobs = append(e.m.Blobs, portable.Blob{SHA256: a.SHA256, ContentType: a.ContentType, ByteSize: a.Size})
	e.assets = append(e.assets, a)
}

// looseAssets adds the files that belong to no issue: all of them if issues are
// exported, else those that a text of the package shows.
func (e *exporter) looseAssets() error {
	var texts portable.Files // the package without these files
	for a, space := range file.LooseAssetsOf(e.tx, e.of.ID) {
		if e.logo != nil && a.ID == e.logo.ID && space == file.LogoNamespace {
			continue // exported as the logo
		}
		if !e.include.Issues {
			if texts == nil {
				texts = portable.Write(e.m, nil)
			}
			if !anyNames(texts, assetPath+a.ID) {
				continue
			}
		}
		if len(e.m.EmbeddedAssets) == api.MaxPackageAssets {
			e.warn("More than %d assets belong to no issue; the others were left out.", api.MaxPackageAssets)
			break
		}
		e.m.EmbeddedAssets = append(e.m.EmbeddedAssets, portable.Asset{ID: a.ID, SHA256: a.SHA256, ContentType: a.ContentType,
			ByteSize: a.Size, Filename: api.Optional(a.Filename), Namespace: space})
		e.carry(a)
	}
	slices.SortStableFunc(e.m.EmbeddedAssets, func(a, b portable.Asset) int {
		return cmp.Or(cmp.Compare(a.SHA256, b.SHA256), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(Deref(a.Filename),
			Deref(b.Filename)))
	})
	return nil
}

// Path prefixes of assets and attachments in texts; an ID follows.
const (
	assetPath      = "/api/assets/"
	attachmentPath = "/api/attachments/"
)

func anyNames(files portable.Files, what string) bool {
	for f := range maps.Values(files) {
		if !f.Binary && strings.Contains(string(f.Data), what) {
			return true
		}
	}
	return false
}

// paintLogo adds the company's logo to the package.
func (e *exporter) paintLogo(rc *api.Request) {
	if e.logo == nil {
		return
	}
	media, _, _ := mime.ParseMediaType(e.logo.ContentType)
	at := portable.LogoPath(media)
	if at == "" || e.logo.Size > api.MaxImage {
		e.warn("The company's logo is no image of a kind that travels, and was left out.")
		return
	}
	b, err := blobBytes(rc, *e.logo)
	if err != nil {
		e.warn("The company's logo was left out: its content can not be read now.")
		return
	}
	e.m.Company.LogoPath, e.m.Company.Logo = &at, &portable.File{Data: b, Binary: true, ContentType: media}
}

// assetSteps create the files that belong to no issue, and record the new IDs for the
// texts that name them.
func (im *importer) assetSteps(rc *api.Request) error {
	for _, a := range im.m.EmbeddedAssets {
		data, ok := im.rooted.Blob(a.SHA256)
		if !ok {
			continue // unreachable: portable.Read refuses such packages
		}
		if media, _, _ := mime.ParseMediaType(a.ContentType); !api.IsImage(data, media) {
			im.warn("Asset %s is not an image, and was left out.", cmp.Or(Deref(a.Filename), a.ID))
			continue
		}
		up, err := rc.Keep(data, Deref(a.Filename), a.ContentType)
		if err != nil {
			return err
		}
		up.File.ID, up.File.Object = im.newID(), im.newID()
		im.renamed = append(im.renamed, assetPath+a.ID, assetPath+up.File.ID)
		im.step(file.KindAssetCreate, file.CreateAsset{File: up.File, Namespace: a.Namespace})
	}
	return nil
}

// logoSteps set the company's logo.
func (im *importer) logoSteps(rc *api.Request) error {
	c := im.m.Company
	p := entity.SaveCompany{ID: im.company.ID, BrandColor: c.BrandColor}
	if c.Logo != nil {
		if len(c.Logo.Data) > api.MaxImage || !api.IsImage(c.Logo.Data, c.Logo.ContentType) {
			im.warn("The logo %s is not an image that can be one, and was left out.", *c.LogoPath)
		} else {
			up, err := rc.Keep(c.Logo.Data, path.Base(*c.LogoPath), c.Logo.ContentType)
			if err != nil {
				return err
			}
			up.File.ID, up.File.Object = im.newID(), im.newID()
			im.step(file.KindAssetCreate, file.CreateAsset{File: up.File, Namespace: file.LogoNamespace})
			p.LogoAsset = &up.File.ID
		}
	}
	if im.created {
		p.AttachmentMaxBytes = positive(c.AttachmentMaxBytes)
		if c.NoStrategyGate {
			p.RequireStrategy = new(bool)
		}
	}
	if p != (entity.SaveCompany{ID: im.company.ID}) {
		im.step(company.KindCompanyUpdate, p)
	}
	return nil
}

func positive(n int64) *int64 {
	if n <= 0 {
		return nil
	}
	return &n
}

// rename replaces the package's file IDs in texts by the new ones. All IDs have the same
// length, so that offsets into texts stay valid.
func (im *importer) rename() {
	if len(im.renamed) == 0 {
		return
	}
	r := strings.NewReplacer(im.renamed...)
	for n := range im.list {
		im.list[n].Payload = []byte(r.Replace(string(im.list[n].Payload)))
	}
}
