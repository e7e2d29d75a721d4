package ignition

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"
	"github.com/flatcar/ignition/config/v2_3/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
)

// fstabColumns is the number of columns of a line in fstab. The last two are about backups and checks of file systems, which
// mount units do not have.
const fstabColumns = 6

// maxUnitName is the maximum length of the name of a unit, in bytes.
const maxUnitName = 255

// maxUnitLine is the maximum length of a line that all versions of systemd, and Ignition, accept.
const maxUnitLine = 2000

// mountsOf returns one mount unit for each mount.
func mountsOf(in []bootstrapv1.MountPoints, path *field.Path) ([]types.Unit, field.ErrorList) {
	var out []types.Unit
	var all field.ErrorList
	seen := map[string]bool{}
	for i, columns := range in {
		at := path.Index(i)
		mount, errs := mountOf(columns, at)
		if len(errs) == 0 && seen[mount.Name] {
			errs = append(errs, invalid(at.Index(1), "must be unique, but another mount has the same mount point"))
		}
		seen[mount.Name] = true
		out, all = append(out, mount), append(all, errs...)
	}
	return out, all
}

// mountOf returns the unit of one mount: device, mount point, kind of file system and options, as in fstab.
func mountOf(columns bootstrapv1.MountPoints, at *field.Path) (types.Unit, field.ErrorList) {
	if len(columns) < 2 || len(columns) > fstabColumns {
		return types.Unit{}, field.ErrorList{invalid(at, "must have between 2 and %d elements: device, mount point, type, options", fstabColumns)}
	}
	var all field.ErrorList
	var values [fstabColumns]string
	for i, c := range columns {
		values[i] = strings.TrimSpace(c)
		all = append(all, checkLine(values[i], at.Index(i))...)
		if strings.HasSuffix(values[i], `\`) {
			all = append(all, invalid(at.Index(i), "must not end with a backslash"))
		}
	}
	device, kind, options := deviceOf(values[0]), values[2], values[3]
	if device == "" {
		all = append(all, invalid(at.Index(0), "must be a device"))
	}
	point, errs := cleanPath(values[1], at.Index(1))
	if all = append(all, errs...); len(all) > 0 {
		return types.Unit{}, all
	}
	name := unit.UnitNamePathEscape(point) + ".mount"
	if point == "/" || len(name) > maxUnitName {
		return types.Unit{}, field.ErrorList{
			invalid(at.Index(1), "must not be /, and its unit, %d bytes long, must have a name of at most %d", len(name), maxUnitName),
		}
	}
	content, err := mountContent(device, point, kind, options)
	if err != nil {
		return types.Unit{}, field.ErrorList{invalid(at, "cannot render its unit: %v", err)}
	}
	if slices.ContainsFunc(strings.Split(content, "\n"), func(line string) bool { return len(line) > maxUnitLine }) {
		return types.Unit{}, field.ErrorList{invalid(at, "a line of its unit has more than %d bytes, the maximum of systemd", maxUnitLine)}
	}
	enabled := !slices.Contains(strings.Split(options, ","), "noauto")
	return types.Unit{Name: name, Enabled: ptr.To(enabled), Contents: content}, nil
}

// mountContent returns the content of a mount unit. Kubeadm does not run until the file system is mounted, because it may write
// to it; without it, only if the mount may fail.
func mountContent(device, point, kind, options string) (string, error) {
	content := []*unit.UnitOption{
		{Section: "Unit", Name: "Description", Value: "Mount " + literal(point)},
		{Section: "Unit", Name: "Before", Value: kubeadmUnitName},
		{Section: "Mount", Name: "What", Value: literal(device)},
		{Section: "Mount", Name: "Where", Value: literal(point)},
	}
	if kind != "" {
		content = append(content, &unit.UnitOption{Section: "Mount", Name: "Type", Value: literal(kind)})
	}
	if options != "" {
		content = append(content, &unit.UnitOption{Section: "Mount", Name: "Options", Value: literal(options)})
	}
	content = append(content, &unit.UnitOption{Section: "Install", Name: "WantedBy", Value: "multi-user.target"})
	if !slices.Contains(strings.Split(options, ","), "nofail") {
		content = append(content, &unit.UnitOption{Section: "Install", Name: "RequiredBy", Value: kubeadmUnitName})
	}
	text, err := io.ReadAll(unit.Serialize(content))
	return string(text), err
}

// literal escapes the specifiers of systemd.
func literal(value string) string { return strings.ReplaceAll(value, "%", "%%") }

// deviceOf returns the path of a device that fstab specifies by its label or ID: systemd waits for paths only.
func deviceOf(column string) string {
	for prefix, folder := range map[string]string{
		"LABEL=": "by-label", "UUID=": "by-uuid", "PARTLABEL=": "by-partlabel", "PARTUUID=": "by-partuuid",
	} {
		if value, ok := strings.CutPrefix(column, prefix); ok && value != "" {
			return "/dev/disk/" + folder + "/" + udevEscape(strings.Trim(value, `"`))
		}
	}
	return column
}

// udevEscape escapes a label as udev does in the names of its links.
func udevEscape(label string) string {
	const plain = "#+-.:=@_"
	var out strings.Builder
	for _, r := range label {
		switch {
		case r >= '0' && r <= '9', r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z', strings.ContainsRune(plain, r), r > 0x7f:
			out.WriteRune(r)
		default:
			fmt.Fprintf(&out, `\x%02x`, r)
		}
	}
	return out.String()
}
