package root

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mistake is a wrong usage, and what its one error must contain.
type mistake struct {
	reason string
	args   []string
	texts  []string
}

// mistakes are the files that wrong usages refer to.
type mistakes struct {
	// broken is a malformed file, closed a kubeconfig of an API server that does not respond, missing a file that does not exist.
	broken, closed, missing string
}

// TestMistakes runs every command in wrong ways. Each must fail with one error, which says what to do, without usage text.
// Mistakes of new commands go into a method of their own, or into the tests of the command's package.
func TestMistakes(t *testing.T) {
	c := newCLI(t)
	dir := t.TempDir()
	m := mistakes{broken: filepath.Join(dir, "broken"), closed: filepath.Join(dir, "closed"), missing: filepath.Join(dir, "none")}
	if err := os.WriteFile(m.broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	writeKubeconfig(t, m.closed, "https://127.0.0.1:1")
	for _, table := range [][]mistake{m.general(), m.templates(), m.connections(), m.rollouts(), m.plans(), m.classes(), m.releases(), m.upgrades(), m.others()} {
		for _, tc := range table {
			t.Run(tc.reason, func(t *testing.T) {
				local := &cli{t: t, env: c.env}
				local.fails(tc.reason, tc.args, tc.texts...)
			})
		}
	}
}

func TestVerbosity(t *testing.T) {
	c := newCLI(t)
	if r := c.with("CLUSTERCTL_LOG_LEVEL", "loud").run("version"); !r.Failed || !strings.Contains(r.Err, `CLUSTERCTL_LOG_LEVEL is "loud"`) {
		t.Errorf("a log level that is not a number must be rejected, got %+v", r)
	}
	if r := c.with("CLUSTERCTL_LOG_LEVEL", "5").run("version"); !strings.Contains(r.Err, "Using configuration") {
		t.Errorf("the variable sets the verbosity like -v, got %+v", r)
	}
	if r := c.run("-v", "5", "version", "-o", "xml"); !strings.Contains(r.Err, "\n  *errors.errorString: --output") && !strings.Contains(r.Err, "\n  *fmt") {
		t.Errorf("from -v 5 on errors are shown in detail, got:\n%s", r.Err)
	}
}

func generateCluster(args ...string) []string {
	return append([]string{"generate", "cluster", "c1"}, args...)
}

// general has mistakes that do not depend on a command.
func (m mistakes) general() []mistake {
	return []mistake{
		{"An unknown command is named.", []string{"frobnicate"}, []string{`unknown command "frobnicate"`}},
		{"A similar command is suggested.", []string{"inti"}, []string{`unknown command "inti" for "clusterctl": did you mean "init"? Otherwise see `}},
		{"The error names an unknown subcommand.", []string{"generate", "x"}, []string{`unknown command "x" for "clusterctl generate"`}},
		{"A similar subcommand is suggested.", []string{"get", "kubeconfg", "c1"}, []string{`did you mean "kubeconfig"?`, "see `clusterctl get --help`"}},
		{"What is neither true nor false is said in words.", []string{"delete", "cluster", "c1", "--wait=maybe"}, []string{`--wait is "maybe": it must be true or false: see`}},
		{"An unknown flag leads to help.", []string{"init", "--x"}, []string{"unknown flag: --x: see `clusterctl init --help`"}},
		{"A specified configuration must exist.", []string{"version", "--config", m.missing}, []string{"cannot read the clusterctl configuration", "none"}},
		{"The error names an invalid configuration.", []string{"version", "--config", m.broken}, []string{"invalid clusterctl configuration " + m.broken}},
		{"The formats there are are listed.", []string{"version", "-o", "xml"}, []string{`--output "xml" is not supported: use text, short, yaml or json`}},
		{"One provider must be named.", []string{"generate", "provider"}, []string{"at least one of the flags"}},
		{"A provider is given by a flag.", []string{"init", "aws"}, []string{`unknown argument "aws" for "clusterctl init", which takes flags alone: did you mean --infrastructure aws? Otherwise see`}},
		{"Other commands take no arguments either.", []string{"upgrade", "plan", "x"}, []string{`unknown argument "x" for "clusterctl upgrade plan"`, "see `clusterctl upgrade plan --help`"}},
		{"A verb without noun has its own unknown ones.", []string{"describe", "machine", "m1"}, []string{`unknown command "machine" for "clusterctl describe"`, "clusterctl describe --help"}},
		{"Deep commands are suggested, too.", []string{"alpha", "rollout", "restrat"}, []string{`did you mean "restart"?`, "clusterctl alpha rollout --help"}},
		{"An unknown shorthand leads to help.", []string{"version", "-x"}, []string{"unknown shorthand flag: 'x' in -x: see `clusterctl version --help`"}},
		{"A flag without its value leads to help.", []string{"init", "--core"}, []string{"flag needs an argument: --core: see `clusterctl init --help`"}},
		{"The verbosity is a number.", []string{"version", "-v", "high"}, []string{`--v is "high": it must be an integer`}},
		{"A configuration is a file.", []string{"config", "repositories", "--config", "."}, []string{"cannot read the clusterctl configuration"}},
		{"A configuration is not downloaded in plain text from nowhere.", []string{"config", "repositories", "--config", "https://127.0.0.1:1/c.yaml"}, []string{"127.0.0.1:1"}},
	}
}

// templates has mistakes of `generate cluster`.
func (m mistakes) templates() []mistake {
	return []mistake{
		{"An invalid number is an error without jargon.", []string{"generate", "cluster", "c1", "--worker-machine-count", "many"}, []string{`--worker-machine-count is "many": it must be an integer: see`}},
		{"A missing name is an error.", []string{"generate", "cluster"}, []string{"the cluster name is required"}},
		{"The error names a template's missing variables, and how to set them.", generateCluster("-i", "toy:v1.0.0"), []string{"required variable KUBERNETES_VERSION", "environment", "configuration file"}},
		{"The flavors there are are listed.", generateCluster("-i", "toy:v1.0.0", "-f", "huge"), []string{`infrastructure-toy v1.0.0 has no template of flavor "huge"`, "choose one of small"}},
		{"A similar provider is suggested.", generateCluster("-i", "toys:v1.0.0"), []string{`did you mean "toy"?`}},
		{"The flag of the right type is proposed.", generateCluster("-i", "kubeadm:v1.0.0"), []string{"use --bootstrap kubeadm"}},
		{"An invalid version is an error.", generateCluster("-i", "toy:latest"), []string{`version "latest" is not a semantic version`}},
		{"The error lists the existing versions.", generateCluster("-i", "toy:v9.9.9"), []string{"infrastructure-toy has no version v9.9.9; the latest versions are v1.1.0, v1.0.0"}},
		{"The error names the flag.", generateCluster("-i", "toy:v1.0.0", "--kubernetes-version", "one"), []string{"--kubernetes-version", `version "one"`}},
		{"Flag and bound are named.", generateCluster("-i", "toy:v1.0.0", "--control-plane-machine-count", "0"), []string{"--control-plane-machine-count", `is "0": it must be an integer, at least 1`}},
		{"An invalid name is rejected.", []string{"generate", "cluster", "C_1", "-i", "toy:v1.0.0"}, []string{`invalid cluster name "C_1"`}},
		{"An invalid namespace is rejected.", generateCluster("-i", "toy:v1.0.0", "-n", "N_1"), []string{`invalid target namespace "N_1"`}},
		{"Two sources are mutually exclusive.", generateCluster("-i", "toy:v1.0.0", "--from", "x"), []string{"--infrastructure/--flavor and --from are mutually exclusive"}},
		{"The error names a missing file.", generateCluster("--from", m.missing), []string{"cannot read the template from --from", "none"}},
		{"Unencrypted sources are refused.", generateCluster("--from", "http://x.example/t.yaml"), []string{"use https"}},
		{"Without a kubeconfig the error shows an alternative.", generateCluster(), []string{"--infrastructure {name}:{version} works without a management cluster", "no kubeconfig"}},
		{"Two names are one too many.", []string{"generate", "cluster", "c1", "c2"}, []string{"expected one cluster name, got 2 (c1, c2)"}},
		{"The number of workers has a bound, too.", generateCluster("-i", "toy:v1.0.0", "--worker-machine-count", "-1"), []string{"--worker-machine-count", "at least 0"}},
		{"A ConfigMap excludes other sources.", generateCluster("--from-config-map", "x", "--from", "y"), []string{"mutually exclusive"}},
		{"A ConfigMap is in a cluster.", generateCluster("--from-config-map", "x"), []string{"no kubeconfig"}},
		{"A folder is no template.", generateCluster("--from", "/"), []string{"cannot read the template from --from"}},
		{"The result cannot be written to a folder.", generateCluster("-i", "toy:v1.0.0", "--kubernetes-version", "v1.29.0", "--write-to", "/"), []string{"cannot write the result"}},
		{"A provider with an empty version.", generateCluster("-i", "toy:"), []string{`provider "toy:"`}},
		{"A provider without name.", generateCluster("-i", ":v1.0.0"), []string{"is not a provider name; use name or name:version"}},
	}
}

// connections has mistakes of commands that connect to a management cluster.
func (m mistakes) connections() []mistake {
	return []mistake{
		{"The error names an invalid kubeconfig.", []string{"get", "kubeconfig", "c1", "--kubeconfig", m.broken}, []string{"cannot read the kubeconfig " + m.broken, "--kubeconfig"}},
		{"The error lists the existing contexts.", []string{"get", "kubeconfig", "c1", "--kubeconfig", m.closed, "--kubeconfig-context", "two"}, []string{`has no context "two"`, "choose one of one"}},
		{"The error names an unresponsive API server.", []string{"get", "kubeconfig", "c1", "--kubeconfig", m.closed}, []string{"127.0.0.1:1", "connection refused"}},
		{"Two names are one too many.", []string{"get", "kubeconfig", "c1", "c2"}, []string{"expected one cluster name, got 2 (c1, c2)"}},
		{"A name is required to get a kubeconfig.", []string{"get", "kubeconfig"}, []string{"the cluster name is required: see `clusterctl get kubeconfig --help`"}},
		{"A name is required to describe a cluster.", []string{"describe", "cluster"}, []string{"the cluster name is required: see `clusterctl describe cluster --help`"}},
		{"A name is required to delete a cluster.", []string{"delete", "cluster"}, []string{"the cluster name is required: see `clusterctl delete cluster --help`"}},
		{"A name is required to create a cluster.", []string{"create", "cluster"}, []string{"the cluster name is required: see `clusterctl create cluster --help`"}},
		{"Describing needs an API server that responds.", []string{"describe", "cluster", "c1", "--kubeconfig", m.closed}, []string{"127.0.0.1:1: connection refused: check that it is running"}},
		{"Deleting needs an API server that responds.", []string{"delete", "cluster", "c1", "--kubeconfig", m.closed}, []string{"127.0.0.1:1: connection refused: check that it is running"}},
		{"Describing needs a kubeconfig.", []string{"describe", "cluster", "c1", "--kubeconfig", m.missing}, []string{m.missing}},
		{"Deleting needs a kubeconfig.", []string{"delete", "cluster", "c1", "--kubeconfig", m.missing}, []string{m.missing}},
		{"A timeout is a duration.", []string{"delete", "cluster", "c1", "--timeout", "5"}, []string{"--timeout"}},
		{"A timeout is positive.", []string{"delete", "cluster", "c1", "--timeout", "-1s"}, []string{"--timeout is -1s: it must be positive"}},
		{"Waiting and not waiting are exclusive.", []string{"delete", "cluster", "c1", "--wait", "--no-wait"}, []string{"[no-wait wait]"}},
		{"init needs a kubeconfig.", []string{"init", "-i", "toy", "--kubeconfig", m.missing}, []string{m.missing}},
	}
}

// rollouts has mistakes of `alpha rollout`.
func (m mistakes) rollouts() []mistake {
	return []mistake{
		{"A resource is required.", []string{"alpha", "rollout", "restart"}, []string{"a resource is required, for example machinedeployment/my-md-0: see `clusterctl alpha rollout restart --help`"}},
		{"A resource has a type.", []string{"alpha", "rollout", "pause", "md-0"}, []string{`resource "md-0" does not have the form type/name: use machinedeployment/{name} or kubeadmcontrolplane/{name}`}},
		{"A resource has a name.", []string{"alpha", "rollout", "resume", "machinedeployment/"}, []string{"does not have the form type/name"}},
		{"Types have no short names.", []string{"alpha", "rollout", "restart", "md/md-0"}, []string{`has the type "md", which is not supported: use machinedeployment/{name}`}},
		{"A kubectl reference is not a type.", []string{"alpha", "rollout", "restart", "machinedeployment.cluster.x-k8s.io/a"}, []string{"which is not supported"}},
		{"All resources are checked first.", []string{"alpha", "rollout", "restart", "machinedeployment/a", "b"}, []string{`resource "b" does not have`}},
		{"Control planes cannot be undone.", []string{"alpha", "rollout", "undo", "kubeadmcontrolplane/a"}, []string{`has the type "kubeadmcontrolplane", which is not supported: use machinedeployment/{name}`}},
		{"A revision is a number.", []string{"alpha", "rollout", "undo", "machinedeployment/a", "--to-revision", "last"}, []string{`--to-revision is "last": it must be an integer`}},
		{"Only undo has revisions.", []string{"alpha", "rollout", "restart", "machinedeployment/a", "--to-revision", "1"}, []string{"unknown flag: --to-revision: see `clusterctl alpha rollout restart --help`"}},
		{"The new name has the same mistakes.", []string{"rollout", "restart"}, []string{"see `clusterctl rollout restart --help`"}},
		{"A similar subcommand of rollout is suggested.", []string{"rollout", "restrat"}, []string{`did you mean "restart"?`, "clusterctl rollout --help"}},
		{"The status of a rollout is that of its Cluster.", []string{"rollout", "status", "machinedeployment/a"}, []string{"`clusterctl wait cluster NAME`", "`clusterctl explain NAME`"}},
		{"Rollouts need an API server that responds.", []string{"alpha", "rollout", "restart", "machinedeployment/a", "--kubeconfig", m.closed}, []string{"connection refused: check that it is running"}},
	}
}

// plans has mistakes of `alpha topology plan`.
func (m mistakes) plans() []mistake {
	plan := func(args ...string) []string { return append([]string{"alpha", "topology", "plan"}, args...) }
	here := filepath.Dir(m.broken)
	return []mistake{
		{"A plan needs files.", plan(), []string{`"file"`}},
		{"A file is not a directory.", plan("-f", m.broken, "-o", m.broken), []string{"is not a directory"}},
		{"The formats of plans are listed.", plan("-f", m.broken, "-o", here, "--output", "xml"), []string{`--output "xml" is not supported: use text, json or yaml`}},
		{"The output of the new name is a format.", []string{"plan", "-f", m.broken, "-o", here}, []string{"is not supported: use text, json or yaml"}},
		{"The new name needs files, too.", []string{"plan"}, []string{`"file"`}},
		{"A file must exist.", plan("-f", m.missing, "-o", here), []string{"cannot read --file " + m.missing}},
		{"A file must be valid.", plan("-f", m.broken, "-o", here), []string{"--file " + m.broken + ": document 1"}},
		{"A selected management cluster must respond.", plan("-f", writeClass(here), "-o", here, "--kubeconfig", m.closed), []string{"connection refused: check that it is running"}},
		{"A similar subcommand is suggested for plans.", []string{"alpha", "topology", "pln"}, []string{`did you mean "plan"?`}},
	}
}

// classes has mistakes of `class`.
func (m mistakes) classes() []mistake {
	publish := func(args ...string) []string { return append([]string{"class", "publish"}, args...) }
	class := writeClass(filepath.Dir(m.broken))
	return []mistake{
		{"A class needs files.", publish(), []string{`"file"`}},
		{"A class is a file.", publish("class.yaml"), []string{`unknown argument "class.yaml"`, "did you mean --file class.yaml? Otherwise see"}},
		{"The file of a class must exist.", publish("-f", m.missing), []string{"cannot read --file " + m.missing}},
		{"The file of a class must be valid.", publish("-f", m.broken), []string{"--file " + m.broken + ": document 1"}},
		{"A revision goes to one place.", publish("-f", class, "--apply", "--output-directory", "x"), []string{"--apply and --output-directory exclude each other"}},
		{"The formats of revisions are listed.", publish("-f", class, "-o", "text"), []string{`--output "text" is not supported: use yaml, json or name`}},
		{"Applying needs an API server that responds.", publish("-f", class, "--apply", "--kubeconfig", m.closed), []string{"connection refused: check that it is running"}},
		{"Listing does, too.", []string{"class", "list", "--kubeconfig", m.closed}, []string{"connection refused: check that it is running"}},
		{"Pruning needs a class.", []string{"class", "prune"}, []string{"the name of the class is required: see `clusterctl class prune --help`"}},
		{"Pruning takes one class.", []string{"class", "prune", "a", "b"}, []string{"expected the name of one class, got 2 (a, b): see"}},
		{"The newest revision is kept.", []string{"class", "prune", "a", "--keep", "0"}, []string{"--keep is 0: at least the newest revision is kept"}},
		{"Formats are for dry runs.", []string{"class", "prune", "a", "-o", "json"}, []string{"--output json is for --dry-run"}},
		{"A similar subcommand is suggested for classes.", []string{"class", "publsh"}, []string{`did you mean "publish"?`}},
	}
}

// writeClass writes a file with a ClusterClass, and returns its path.
func writeClass(dir string) string {
	path := filepath.Join(dir, "class.yaml")
	class := "apiVersion: cluster.x-k8s.io/v1beta1\nkind: ClusterClass\nmetadata: {name: c}\n"
	if err := os.WriteFile(path, []byte(class), 0o600); err != nil {
		panic(err) // the directory is a temporary one of the test
	}
	return path
}

// releases has mistakes of `check provider`.
func (m mistakes) releases() []mistake {
	return []mistake{
		{"A folder is required.", []string{"check", "provider"}, []string{"the folder or URL of a release is required: see `clusterctl check provider --help`"}},
		{"A URL has a provider.", []string{"check", "provider", "https://github.com/o/r/releases/v1.0.0/c.yaml"}, []string{"cannot determine the provider of https://github.com/o/r/", "--provider infrastructure-aws"}},
		{"The provider of a URL must be one.", []string{"check", "provider", "https://github.com/o/r/releases/v1.0.0/c.yaml", "--provider", "aws"}, []string{`--provider: "aws" is not a provider label`}},
		{"A URL must be one of a repository.", []string{"check", "provider", "ftp://x.example/c.yaml", "--provider", "infrastructure-aws"}, []string{`invalid url "ftp://x.example/c.yaml"`}},
		{"The folder must exist.", []string{"check", "provider", m.missing}, []string{"cannot read the release", m.missing}},
		{"A file is not a release.", []string{"check", "provider", m.broken}, []string{"set the folder that holds all files of the release"}},
		{"A release has a version.", []string{"check", "provider", "testdata/repository/infrastructure-toy"}, []string{"rename the folder, or use --version"}},
		{"A release has a provider.", []string{"check", "provider", "testdata/repository/cert-manager/v1.14.4"}, []string{`"cert-manager" is not a provider label, for example infrastructure-aws: rename the parent folder, or use --provider`}},
		{"The version must be one.", []string{"check", "provider", "testdata", "--version", "new"}, []string{`version "new" is not a semantic version`}},
		{"The formats of findings are listed.", []string{"check", "provider", "testdata", "-o", "xml"}, []string{`--output "xml" is not supported: use text, json or yaml`}},
	}
}

// others has mistakes of the other commands.
func (m mistakes) others() []mistake {
	return []mistake{
		{"init takes providers by flags.", []string{"init", "aws"}, []string{"clusterctl init"}},
		{"Images of unknown providers cannot be listed.", []string{"init", "list-images", "-i", "toys"}, []string{`did you mean "toy"?`}},
		{"The core provider cannot be skipped.", []string{"init", "list-images", "--core", "-"}, []string{"--core"}},
		{"One provider at a time is generated.", []string{"generate", "provider", "-i", "toy", "-b", "kubeadm"}, []string{"[bootstrap infrastructure]"}},
		{"Generating needs the values of all variables.", []string{"generate", "provider", "-i", "toy"}, []string{"required variable TOY_TOKEN", "set it in the environment"}},
		{"A generated provider must be known.", []string{"generate", "provider", "--addon", "toy"}, []string{"use --infrastructure toy"}},
		{"The formats of repositories are listed.", []string{"config", "repositories", "-o", "xml"}, []string{`Error: --output "xml" is not supported: use text, json or yaml`}},
		{"A file to generate from must exist.", []string{"generate", "yaml", "--from", m.missing}, []string{m.missing}},
		{"A shell is required.", []string{"completion"}, []string{"a shell is required: use one of bash, zsh, fish; see `clusterctl completion --help`"}},
		{"The shell must be known.", []string{"completion", "csh"}, []string{`shell "csh" is not supported: use one of bash, zsh, fish`}},
	}
}

// upgrades has mistakes of `upgrade`.
func (m mistakes) upgrades() []mistake {
	apply := func(args ...string) []string { return append([]string{"upgrade", "apply"}, args...) }
	return []mistake{
		{"Something must be selected to upgrade.", apply(), []string{"nothing is selected: set --contract to upgrade all providers", "see `clusterctl upgrade apply --help`"}},
		{"A contract is for all providers.", apply("--contract", "v1beta1", "-i", "toy:v1.1.0"), []string{"--contract upgrades all providers: omit the flags of providers, or --contract"}},
		{"Other contracts are not supported.", apply("--contract", "v1beta3"), []string{"this clusterctl can only upgrade to contracts v1beta1 and v1beta2, not to v1beta3"}},
		{"A version is required to upgrade.", apply("-i", "toy"), []string{"--infrastructure: toy has no version: use toy:{version}"}},
		{"The core provider has a version, too.", apply("--core", "cluster-api"), []string{"--core: cluster-api has no version"}},
		{"A version is a semantic one.", apply("-b", "kubeadm:new"), []string{"--bootstrap: ", `"new" is not a semantic version`}},
		{"A provider is upgraded to one version.", apply("-i", "toy:v1.0.0,toy:v1.1.0"), []string{"--infrastructure specifies toy twice"}},
		{"A timeout of providers is positive.", apply("--contract", "v1beta1", "--wait-provider-timeout", "0"), []string{"--wait-provider-timeout is 0: it must be positive"}},
		{"A timeout of providers is a number.", apply("--contract", "v1beta1", "--wait-provider-timeout", "5m"), []string{`--wait-provider-timeout is "5m": it must be an integer`}},
		{"Upgrades need an API server that responds.", apply("--contract", "v1beta1", "--kubeconfig", m.closed), []string{"connection refused: check that it is running"}},
		{"Planning needs an API server that responds.", []string{"upgrade", "plan", "--kubeconfig", m.closed}, []string{"connection refused: check that it is running"}},
		{"upgrade apply takes providers by flags.", apply("toy:v1.1.0"), []string{"clusterctl upgrade apply"}},
		{"A similar subcommand of upgrade is suggested.", []string{"upgrade", "aply"}, []string{`did you mean "apply"?`}},
	}
}
