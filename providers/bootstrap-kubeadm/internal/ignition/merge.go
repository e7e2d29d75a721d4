package ignition

import (
	"cmp"
	"path"
	"slices"

	"github.com/flatcar/ignition/config/v2_3/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// merge returns the generated config with the user's added. If both have an element, the user's replaces it; of units and
// users only the fields that the user's has, so that a drop-in of kubeadm.service keeps the unit.
func merge(generated, user types.Config) types.Config {
	out := user
	out.Ignition.Version = generated.Ignition.Version
	out.Passwd.Users = keyed(generated.Passwd.Users, user.Passwd.Users, func(u types.PasswdUser) string { return u.Name }, mergeUser)
	out.Systemd.Units = keyed(generated.Systemd.Units, user.Systemd.Units, func(u types.Unit) string { return u.Name }, mergeUnit)
	out.Storage.Disks = keyed(generated.Storage.Disks, user.Storage.Disks, func(d types.Disk) string { return d.Device }, second[types.Disk])
	out.Storage.Filesystems = mergeFilesystems(generated.Storage.Filesystems, user.Storage.Filesystems)
	out.Storage.Files = mergeFiles(generated.Storage.Files, user.Storage)
	return out
}

// keyed returns the elements of both lists, in order. The user's elements are combined with the generated one of the same key.
func keyed[T any](generated, user []T, key func(T) string, combine func(generated, user T) T) []T {
	out := slices.Clone(generated)
	index := map[string]int{}
	for i, g := range generated {
		index[key(g)] = i
	}
	for _, u := range user {
		if i, ok := index[key(u)]; ok {
			out[i] = combine(out[i], u)
		} else {
			out = append(out, u)
		}
	}
	return out
}

func second[T any](_, user T) T { return user }

func mergeUnit(generated, user types.Unit) types.Unit {
	generated.Contents = cmp.Or(user.Contents, generated.Contents)
	if user.Enabled != nil || user.Enable {
		generated.Enable, generated.Enabled = user.Enable, user.Enabled
	}
	generated.Mask = generated.Mask || user.Mask
	generated.Dropins = keyed(generated.Dropins, user.Dropins, func(d types.SystemdDropin) string { return d.Name },
		second[types.SystemdDropin])
	return generated
}

func mergeUser(generated, user types.PasswdUser) types.PasswdUser {
	user.SSHAuthorizedKeys = union(user.SSHAuthorizedKeys, generated.SSHAuthorizedKeys)
	if user.Create != nil { // The deprecated form excludes most other fields.
		user.PasswordHash = cmp.Or(user.PasswordHash, generated.PasswordHash)
		return user
	}
	user.Groups = union(user.Groups, generated.Groups)
	user.PasswordHash = cmp.Or(user.PasswordHash, generated.PasswordHash)
	user.Gecos = cmp.Or(user.Gecos, generated.Gecos)
	user.HomeDir = cmp.Or(user.HomeDir, generated.HomeDir)
	user.PrimaryGroup = cmp.Or(user.PrimaryGroup, generated.PrimaryGroup)
	user.Shell = cmp.Or(user.Shell, generated.Shell)
	return user
}

// union returns the first list with the elements of the second that it does not have.
func union[T comparable](first, second []T) []T {
	seen := sets.New(first...)
	return append(first, slices.DeleteFunc(slices.Clone(second), seen.Has)...)
}

// mergeFilesystems drops generated file systems whose device or name the user's has, too.
func mergeFilesystems(generated, user []types.Filesystem) []types.Filesystem {
	devices, names := map[string]bool{}, map[string]bool{}
	for _, u := range user {
		devices[ptr.Deref(u.Mount, types.Mount{}).Device] = true
		names[u.Name] = true
	}
	out := slices.DeleteFunc(slices.Clone(generated), func(g types.Filesystem) bool {
		return devices[g.Mount.Device] || g.Name != "" && names[g.Name]
	})
	return append(out, user...)
}

// mergeFiles drops generated files that the user's files, links or directories replace. Those that are appended to keep them.
func mergeFiles(generated []types.File, user types.Storage) []types.File {
	replaced := map[string]bool{}
	add := func(n types.Node) {
		if n.Filesystem == root {
			replaced[path.Clean(n.Path)] = true
		}
	}
	for _, f := range user.Files {
		if !f.Append {
			add(f.Node)
		}
	}
	for _, l := range user.Links {
		add(l.Node)
	}
	for _, d := range user.Directories {
		add(d.Node)
	}
	out := slices.DeleteFunc(slices.Clone(generated), func(f types.File) bool { return replaced[f.Path] })
	return append(out, user.Files...)
}
