package ignition

import (
	"github.com/flatcar/ignition/config/v2_3/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
)

// disksOf returns the partitions of devices.
func disksOf(in []bootstrapv1.Partition, path *field.Path) ([]types.Disk, field.ErrorList) {
	var out []types.Disk
	var all field.ErrorList
	seen := map[string]bool{}
	for i, p := range in {
		at := path.Index(i)
		device, errs := cleanPath(p.Device, at.Child("device"))
		if len(errs) == 0 && seen[device] {
			errs = append(errs, invalid(at.Child("device"), "must be unique, but another partition has the same device"))
		}
		seen[device] = true
		if p.TableType != "" && p.TableType != "gpt" {
			errs = append(errs, invalid(at.Child("tableType"), "only gpt is supported with format ignition"))
		}
		if len(p.DiskLayout) > 0 {
			errs = append(errs, invalid(at.Child("diskLayout"), unsupported))
		}
		disk := types.Disk{Device: device, WipeTable: ptr.Deref(p.Overwrite, false)}
		if ptr.Deref(p.Layout, false) {
			// With a number, Ignition keeps the partition of an initialized disk; without, it would try to add another one.
			disk.Partitions = []types.Partition{{Number: 1}}
		}
		out, all = append(out, disk), append(all, errs...)
	}
	return out, all
}

// labelSizes are the maximum lengths of labels by the kind of file system, in bytes. All kinds that Ignition supports have one.
var labelSizes = map[string]int{"btrfs": 255, "ext4": 16, "swap": 15, "vfat": 11, "xfs": 12} // a constant table

// filesystemsOf returns the file systems to create. Their names, by which a Container Linux Config refers to them, are their
// labels.
func filesystemsOf(in []bootstrapv1.Filesystem, path *field.Path) ([]types.Filesystem, field.ErrorList) {
	var out []types.Filesystem
	var all field.ErrorList
	for i, f := range in {
		at := path.Index(i)
		device, errs := cleanPath(f.Device, at.Child("device"))
		size, supported := labelSizes[f.Filesystem]
		if !supported {
			errs = append(errs, invalid(at.Child("filesystem"), "must be btrfs, ext4, swap, vfat or xfs with format ignition"))
		} else if len(f.Label) > size {
			errs = append(errs, invalid(at.Child("label"), "must be at most %d bytes for %s", size, f.Filesystem))
		}
		errs = append(errs, checkLine(f.Label, at.Child("label"))...)
		if f.Label == root {
			errs = append(errs, invalid(at.Child("label"), "must not be %q, which is the name of the root file system in Ignition", root))
		}
		if f.Partition != "" {
			errs = append(errs, invalid(at.Child("partition"), unsupported))
		}
		if f.ReplaceFS != "" {
			errs = append(errs, invalid(at.Child("replaceFS"), unsupported))
		}
		mount := &types.Mount{Device: device, Format: f.Filesystem, WipeFilesystem: ptr.Deref(f.Overwrite, false)}
		if f.Label != "" {
			mount.Label = ptr.To(f.Label)
		}
		for j, o := range f.ExtraOpts {
			errs = append(errs, checkLine(o, at.Child("extraOpts").Index(j))...)
			mount.Options = append(mount.Options, types.MountOption(o))
		}
		out, all = append(out, types.Filesystem{Name: f.Label, Mount: mount}), append(all, errs...)
	}
	return out, all
}
