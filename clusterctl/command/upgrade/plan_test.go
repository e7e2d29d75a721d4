package upgrade

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/packages/certmanager"
	"sigs.k8s.io/cluster-api/packages/choose"
)

func TestPrintPlan(t *testing.T) {
	core := clusterctlv1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "cluster-api", Namespace: "capi-system"}, Type: "CoreProvider", Version: "v1.0.0"}
	heading := func(contract string) string {
		return "\nManagement group: capi-system/cluster-api, latest release available for the " + contract + " API Version of Cluster API (contract):\n\n"
	}
	tests := map[string]struct {
		reason         string
		contract, next string
		problem        error
		declared, due  bool
		want           string
	}{
		"CertManager": {
			reason: "apply upgrades cert-manager, too.", contract: "v1beta1", due: true,
			want: heading("v1beta1") + "NAME          NAMESPACE     TYPE           CURRENT VERSION   NEXT VERSION\n" +
				"cluster-api   capi-system   CoreProvider   v1.0.0            Already up to date\n\n" +
				"The providers are up to date, cert-manager is not. You can now apply the upgrade by executing the following command:\n\n" +
				"   clusterctl upgrade apply --contract v1beta1\n",
		},
		"CertManagerUnknown": {
			reason: "Unless a provider cannot be checked.", contract: "v1beta1", due: true, problem: errors.New("gone"),
			want: heading("v1beta1") + "NAME          NAMESPACE     TYPE           CURRENT VERSION   NEXT VERSION\n" +
				"cluster-api   capi-system   CoreProvider   v1.0.0            Unknown: gone\n\n" +
				"No newer versions of providers are known, but not all could be checked. cert-manager is not up to date. " +
				"You can now apply the upgrade by executing the following command:\n\n   clusterctl upgrade apply --contract v1beta1\n",
		},
		"Unknown": {
			reason: "Without a command if there is nothing that it would do.", contract: "v1beta1", problem: errors.New("gone"),
			want: heading("v1beta1") + "NAME          NAMESPACE     TYPE           CURRENT VERSION   NEXT VERSION\n" +
				"cluster-api   capi-system   CoreProvider   v1.0.0            Unknown: gone\n\n" +
				"No newer versions are known, but not all providers could be checked.\n",
		},
		"CertManagerOfOperator": {
			reason: "The operator does not upgrade cert-manager.", contract: "v1beta1", due: true, declared: true,
			want: heading("v1beta1") + "NAME          NAMESPACE     TYPE           CURRENT VERSION   NEXT VERSION\n" +
				"cluster-api   capi-system   CoreProvider   v1.0.0            Already up to date\n\n" +
				"The providers are up to date, cert-manager is not. You can now apply the upgrade by executing the following command:\n\n" +
				"   clusterctl upgrade apply --contract v1beta1\n",
		},
		"CertManagerAndProvidersOfOperator": {
			reason: "Two commands are needed.", contract: "v1beta1", next: "v1.1.0", due: true, declared: true,
			want: heading("v1beta1") + "NAME          NAMESPACE     TYPE           CURRENT VERSION   NEXT VERSION\n" +
				"cluster-api   capi-system   CoreProvider   v1.0.0            v1.1.0\n\n" +
				"You can now apply the upgrade by executing the following commands, the second one for cert-manager:\n\n" +
				"   clusterctl operator upgrade apply --contract v1beta1\n   clusterctl upgrade apply --contract v1beta1\n",
		},
		"Newer": {
			reason: "The command to run next is printed.", contract: "v1beta1", next: "v1.1.0",
			want: heading("v1beta1") + "NAME          NAMESPACE     TYPE           CURRENT VERSION   NEXT VERSION\n" +
				"cluster-api   capi-system   CoreProvider   v1.0.0            v1.1.0\n\n" +
				"You can now apply the upgrade by executing the following command:\n\n   clusterctl upgrade apply --contract v1beta1\n",
		},
		"UpToDate": {
			reason: "There is nothing to do.", contract: "v1beta1",
			want: heading("v1beta1") + "NAME          NAMESPACE     TYPE           CURRENT VERSION   NEXT VERSION\n" +
				"cluster-api   capi-system   CoreProvider   v1.0.0            Already up to date\n\nYou are already up to date!\n",
		},
		"OtherContract": {
			reason: "No command upgrades to another contract.", contract: "v1beta3", next: "v2.0.0",
			want: heading("v1beta3") + "NAME          NAMESPACE     TYPE           CURRENT VERSION   NEXT VERSION\n" +
				"cluster-api   capi-system   CoreProvider   v1.0.0            v2.0.0\n\n" +
				"The current version of clusterctl could not upgrade to v1beta3 contract (only v1beta1 and v1beta2 supported).\n",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			streams, buffers := iostreams.Test()
			p := choose.ContractPlan{Contract: tc.contract, Core: core, Items: []choose.ContractItem{{Installed: core, Next: tc.next, Problem: tc.problem}}}
			if err := printPlan(streams, p, tc.declared, tc.due); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, buffers.Out.String()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// With --exit-code, the command fails where apply would, and says whether apply would change anything.
func TestPlanExitCode(t *testing.T) {
	core := clusterctlv1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "cluster-api"}, Version: "v1.0.0"}
	plan := func(contract, next string, problem error) choose.ContractPlan {
		return choose.ContractPlan{Contract: contract, Items: []choose.ContractItem{{Installed: core, Next: next, Problem: problem}}}
	}
	for reason, tc := range map[string]struct {
		findings findings
		want     int
	}{
		"nothing":                          {findings{plans: []choose.ContractPlan{plan("v1beta1", "", nil)}}, 0},
		"a newer version":                  {findings{plans: []choose.ContractPlan{plan("v1beta1", "v1.1.0", nil)}}, 2},
		"one that no command upgrades to":  {findings{plans: []choose.ContractPlan{plan("v1beta1", "", nil), plan("v1beta3", "v2.0.0", nil)}}, 0},
		"one of the other contract":        {findings{plans: []choose.ContractPlan{plan("v1beta1", "", nil), plan("v1beta2", "v2.0.0", nil)}}, 2},
		"cert-manager":                     {findings{plans: []choose.ContractPlan{plan("v1beta1", "", nil)}, certManager: true}, 2},
		"the operator":                     {findings{plans: []choose.ContractPlan{plan("v1beta1", "", nil)}, operator: true}, 2},
		"a repository that cannot be read": {findings{plans: []choose.ContractPlan{plan("v1beta1", "", errors.New("gone"))}, certManager: true}, 1},
	} {
		if got := factory.ExitCode(tc.findings.exitCode()); got != tc.want {
			t.Errorf("%s: exit code %d, want %d", reason, got, tc.want)
		}
	}
}

func TestPrintCertManager(t *testing.T) {
	tests := map[string]struct {
		reason, installed, wanted string
		images                    []string
		unchecked                 error
		want                      string
	}{
		"Images":    {reason: "Other images replace those of the same version.", installed: "v1.14.4", wanted: "v1.14.4", images: []string{"m/a:v9", "m/b:v9"}, want: "Cert-Manager \"v1.14.4\" will get other images: m/a:v9, m/b:v9\n"},
		"Unchecked": {reason: "What is unknown is said.", installed: "v1.14.4", wanted: "v1.14.4", unchecked: errors.New("gone"), want: "Cert-Manager is already up to date, but its images could not be compared: gone\n"},
		"None":      {reason: "A cert-manager of others is not mentioned.", wanted: "v1.14.4"},
		"Older":     {reason: "An older one is upgraded.", installed: "v0.11.0", wanted: "v1.14.4", want: "Cert-Manager will be upgraded from \"v0.11.0\" to \"v1.14.4\"\n"},
		"Same":      {reason: "The same one stays.", installed: "v1.14.4", wanted: "v1.14.4", want: "Cert-Manager is already up to date\n"},
		"Newer":     {reason: "A newer one stays.", installed: "v1.15.0", wanted: "v1.14.4", want: "Cert-Manager is already up to date\n"},
		"Rebuilt":   {reason: "Another build of the same version replaces it.", installed: "v1.14.4+a", wanted: "v1.14.4+b", want: "Cert-Manager will be upgraded from \"v1.14.4+a\" to \"v1.14.4+b\"\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			printCertManager(&out, &certmanager.Upgrade{Installed: tc.installed, Wanted: tc.wanted, Images: tc.images, Unchecked: tc.unchecked})
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
