package ignition

import (
	"strings"
	"unicode"

	"github.com/flatcar/ignition/config/v2_3/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
)

const (
	ntpPath     = "/etc/ntp.conf"
	ntpUnitName = "ntpd.service"
	// ntpRestrictions prevent the machine from serving time, or its configuration, to others.
	ntpRestrictions = `restrict default nomodify nopeer noquery notrap limited kod
restrict 127.0.0.1
restrict [::1]
`
)

// ntpOf returns the configuration of the NTP daemon, if there are servers, and its unit, if it is enabled or disabled.
func ntpOf(in *bootstrapv1.NTP, at *field.Path) ([]types.File, []types.Unit, field.ErrorList) {
	if in == nil {
		return nil, nil, nil
	}
	var all field.ErrorList
	var config strings.Builder
	for i, server := range in.Servers {
		at := at.Child("servers").Index(i)
		switch errs := checkLine(server, at); {
		case len(errs) > 0:
			all = append(all, errs...)
		case server == "" || strings.HasPrefix(server, "-") ||
			strings.ContainsFunc(server, func(r rune) bool { return unicode.IsSpace(r) || r == '#' }):
			all = append(all, invalid(at, "must be a host name or an IP address"))
		}
		config.WriteString("server " + server + "\n")
	}
	var files []types.File
	if len(in.Servers) > 0 {
		files = []types.File{file(ntpPath, 0o644, []byte(config.String()+ntpRestrictions))}
	}
	if in.Enabled == nil {
		return files, nil, all
	}
	return files, []types.Unit{{Name: ntpUnitName, Enabled: in.Enabled}}, all
}
