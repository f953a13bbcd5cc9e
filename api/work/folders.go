package work

import (
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/ledger"
)

// folderList is the answer to a list of folders.
type folderList struct {
	Folders []routine.Folder `json:"folders"`
}

type newFolder struct {
	Kind     string          `json:"kind" enum:"routine,skill"`
	ParentID api.Opt[string] `json:"parentId" format:"uuid"`
	Name     string          `json:"name" minLength:"1" maxLength:"120"`
	Slug     api.Opt[string] `json:"slug" minLength:"1" maxLength:"120"`
	Color    api.Opt[string] `json:"color" minLength:"1" maxLength:"80"`
	Position api.Opt[int64]  `json:"position" minimum:"0" maximum:"1000000"`
}

type patchFolder struct {
	Name     *string         `json:"name,omitempty" minLength:"1" maxLength:"120" nullable:"false"`
	Slug     *string         `json:"slug,omitempty" minLength:"1" maxLength:"120" nullable:"false"`
	Color    api.Opt[string] `json:"color" minLength:"1" maxLength:"80"`
	Position *int64          `json:"position,omitempty" minimum:"0" maximum:"1000000" nullable:"false"`
}

type moveFolder struct {
	ParentID api.Opt[string] `json:"parentId" format:"uuid"`
	Position int64           `json:"position" minimum:"0" maximum:"1000000"`
}

type fileItem struct {
	Kind     string          `json:"kind" enum:"routine,skill"`
	ItemID   string          `json:"itemId" format:"uuid"`
	FolderID api.Opt[string] `json:"folderId" format:"uuid"`
}

type ownFolder struct {
	Slug api.Opt[string] `json:"slug" minLength:"1" maxLength:"120"`
}

func FolderRoutes() []api.Route {
	const tag, all = "folders", "/api/companies/{companyId}/folders"
	at := api.InPath("folderId")
	return []api.Route{
		api.Read(api.Route{Path: all, Tag: tag, Summary: "List the folders of a kind",
			Query: []api.Param{{Name: "kind", Doc: "routine or skill"}}}, listFolders),
		api.Create[routine.Folder](api.Route{Path: all, Tag: tag, Summary: "Make a folder", Who: api.Board},
			routine.KindFolderSave, createFolder),
		api.Create[routine.Folder](api.Route{Path: all + "/ensure-my", Tag: tag, Status: 200,
			Summary: "Find or make the user's own folder of skills", Who: api.Board}, routine.KindFolderSave,
			func(rc *api.Request, in ownFolder) (routine.SaveFolder, error) {
				return routine.SaveFolder{ID: api.NewID(), New: true, Kind: routine.FolderSkills, Name: new("My skills"),
					Slug: new(in.Slug.Or("my-skills")), SystemKey: "my:" + rc.Actor.ID}, nil
			}),
		api.Create[routine.FiledItem](api.Route{Path: all + "/items/move", Tag: tag, Status: 200,
			Summary: "Put a routine into a folder", Who: api.Board}, routine.KindFolderFile,
			func(_ *api.Request, in fileItem) (routine.FileItem, error) {
				return routine.FileItem{Kind: in.Kind, Item: strings.ToLower(in.ItemID), Folder: api.BodyID(in.FolderID)}, nil
			}),
		api.Change[routine.Folder](api.Route{Path: all + "/{folderId}", Tag: tag, Summary: "Change a folder",
			Who: api.Board}, routine.KindFolderSave, at,
			func(_ *api.Request, id string, in patchFolder) (routine.SaveFolder, error) {
				return routine.SaveFolder{ID: id, Name: in.Name, Slug: in.Slug, Color: api.TextOf(in.Color),
					Position: in.Position}, nil
			}),
		api.Change[routine.Folder](api.Route{Method: "POST", Path: all + "/{folderId}/move", Tag: tag,
			Summary: "Move a folder", Who: api.Board}, routine.KindFolderSave, at,
			func(_ *api.Request, id string, in moveFolder) (routine.SaveFolder, error) {
				return routine.SaveFolder{ID: id, Parent: api.IdPointer(in.ParentID), Position: &in.Position}, nil
			}),
		api.Remove[routine.Folder](api.Route{Path: all + "/{folderId}", Tag: tag,
			Summary: "Delete a folder; what lies in it moves up", Who: api.Board}, routine.KindFolderDelete, at,
			func(_ *api.Request, id string) routine.DeleteFolder { return routine.DeleteFolder{ID: id} }),
	}
}

func listFolders(tx *ledger.Tx, rc *api.Request) (out folderList, err error) {
	kind := rc.Query("kind")
	if kind != "" && !slices.Contains(routine.FolderKinds, kind) {
		return out, api.Invalid("Invalid kind: expected routine or skill")
	}
	row, err := api.CompanyIn(tx, rc)
	return folderList{routine.FoldersOf(tx, row.ID, kind)}, err
}

func createFolder(_ *api.Request, in newFolder) (routine.SaveFolder, error) {
	id, slug := api.NewID(), in.Slug.Pointer()
	if slug == nil && core.URLKey(in.Name) == "" {
		slug = new(api.OwnSlug("folder", id))
	}
	return routine.SaveFolder{ID: id, New: true, Kind: in.Kind, Parent: api.IdPointer(in.ParentID), Name: &in.Name,
		Slug: slug, Color: api.TextOf(in.Color), Position: in.Position.Pointer()}, nil
}
