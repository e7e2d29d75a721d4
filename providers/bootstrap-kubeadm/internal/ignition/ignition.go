package ignition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	"github.com/flatcar/ignition/config/v2_3/types"
	"github.com/flatcar/ignition/config/validate"
	"github.com/flatcar/ignition/config/validate/report"
	"k8s.io/apimachinery/pkg/util/validation/field"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/bootstrapdata"
)

// Document is rendered bootstrap data.
type Document struct {
	// JSON is the Ignition document.
	JSON []byte
	// Warnings are those about the user's Container Linux Config. They contain none of its values.
	Warnings []string
}

// Init renders the document of the machine that initializes a control plane. Errors are InvalidErrors.
func Init(in bootstrapdata.Input, custom bootstrapv1.IgnitionSpec) (Document, error) {
	return render(in, "init", custom)
}

// Join renders the document of a machine that joins a cluster. Errors are InvalidErrors.
func Join(in bootstrapdata.Input, custom bootstrapv1.IgnitionSpec) (Document, error) {
	return render(in, "join", custom)
}

// Check reports why no document can be rendered from a spec, as far as that does not depend on the contents of Secrets. Errors
// are InvalidErrors. retry is useExperimentalRetryJoin, which only clients of v1beta1 can set.
func Check(spec *bootstrapv1.KubeadmConfigSpec, retry bool) error {
	if retry {
		return &InvalidError{field.ErrorList{invalid(field.NewPath("spec", "useExperimentalRetryJoin"), unsupported)}}
	}
	_, err := Join(bootstrapdata.Of(spec), spec.Ignition)
	return err
}

// unsupported is the error for what Ignition 2.3 cannot express.
const unsupported = "is not supported with format ignition"

// render renders a document in which kubeadm runs a command, init or join.
func render(in bootstrapdata.Input, command string, custom bootstrapv1.IgnitionSpec) (Document, error) {
	spec := field.NewPath("spec")
	config, errs := generate(in, command, spec)
	additional, warnings, more := convert(custom.ContainerLinuxConfig, spec.Child("ignition", "containerLinuxConfig"))
	if errs = append(errs, more...); len(errs) > 0 {
		return Document{}, &InvalidError{errs}
	}
	config = merge(config, additional)
	for _, entry := range validate.ValidateWithoutSource(reflect.ValueOf(config)).Entries {
		if entry.Kind == report.EntryError {
			// The values were checked, so this is a conflict with additionalConfig. The message may quote a file: it is left out.
			errs = append(errs, invalid(spec, "the Ignition document generated from it is invalid"))
			return Document{}, &InvalidError{errs}
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(config); err != nil {
		return Document{}, fmt.Errorf("rendering an Ignition document: %w", err)
	}
	return Document{JSON: out.Bytes(), Warnings: warnings}, nil
}

// generate returns the document without the user's Container Linux Config. Errors name the fields below path, the spec's.
func generate(in bootstrapdata.Input, command string, path *field.Path) (types.Config, field.ErrorList) {
	config := types.Config{Ignition: types.Ignition{Version: types.MaxVersion.String()}}
	script, all := kubeadmScript(in, command, path)
	if len(in.BootCommands) > 0 {
		all = append(all, invalid(path.Child("bootCommands"), unsupported))
	}
	users, errs := usersOf(in.Users, path.Child("users"))
	config.Passwd.Users, all = users, append(all, errs...)

	generated, errs := accessFiles(in.Users, path.Child("users"))
	all = append(all, errs...)
	units := []types.Unit{kubeadmUnit()}
	timeFiles, timeUnits, errs := ntpOf(in.NTP, path.Child("ntp"))
	generated, units, all = append(generated, timeFiles...), append(units, timeUnits...), append(all, errs...)
	mounts, errs := mountsOf(in.Mounts, path.Child("mounts"))
	config.Systemd.Units, all = append(units, mounts...), append(all, errs...)

	config.Storage.Files, errs = filesOf(in.Certificates, generated, in.Files, path.Child("files"))
	for _, f := range in.Restore.Files() {
		mode, _ := strconv.ParseUint(f.Permissions, 8, 32) // They are ours.
		config.Storage.Files = append(config.Storage.Files, file(f.Path, int(mode&maxMode), []byte(f.Content)))
	}
	config.Storage.Files = append(config.Storage.Files,
		file(scriptPath, 0o700, []byte(script)), file(kubeadmConfigPath, 0o600, []byte(in.Kubeadm)))
	all = append(all, errs...)
	disks := path.Child("diskSetup")
	config.Storage.Disks, errs = disksOf(in.DiskSetup.Partitions, disks.Child("partitions"))
	all = append(all, errs...)
	config.Storage.Filesystems, errs = filesystemsOf(in.DiskSetup.Filesystems, disks.Child("filesystems"))
	return config, append(all, errs...)
}
