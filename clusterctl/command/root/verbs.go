package root

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/command/check"
	"sigs.k8s.io/cluster-api/clusterctl/command/class"
	"sigs.k8s.io/cluster-api/clusterctl/command/create"
	deletecommand "sigs.k8s.io/cluster-api/clusterctl/command/delete"
	"sigs.k8s.io/cluster-api/clusterctl/command/describe"
	"sigs.k8s.io/cluster-api/clusterctl/command/generate"
	"sigs.k8s.io/cluster-api/clusterctl/command/get"
	"sigs.k8s.io/cluster-api/clusterctl/command/move"
	"sigs.k8s.io/cluster-api/clusterctl/command/operator"
	"sigs.k8s.io/cluster-api/clusterctl/command/plan"
	"sigs.k8s.io/cluster-api/clusterctl/command/rollout"
	"sigs.k8s.io/cluster-api/clusterctl/command/takeover"
	"sigs.k8s.io/cluster-api/clusterctl/command/upgrade"
	"sigs.k8s.io/cluster-api/clusterctl/command/wait"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	docs "sigs.k8s.io/cluster-api/docs/command"
	"sigs.k8s.io/cluster-api/docs/manual"
	"sigs.k8s.io/cluster-api/docs/reference"
)

// verb completes a command that only groups subcommands.
func verb(cmd *cobra.Command, nouns ...*cobra.Command) *cobra.Command {
	cmd.Args = unknown
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(nouns...)
	return cmd
}

// unknown rejects arguments, which can only be unknown subcommands.
func unknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	proposal := ""
	if cmd.SuggestionsMinimumDistance = 2; len(cmd.SuggestionsFor(args[0])) > 0 {
		proposal = fmt.Sprintf("did you mean %q? Otherwise ", cmd.SuggestionsFor(args[0])[0])
	}
	return fmt.Errorf("unknown command %q for %q: %ssee `%s --help`", args[0], cmd.CommandPath(), proposal, cmd.CommandPath())
}

func newAlpha(f *factory.Factory) *cobra.Command {
	return verb(&cobra.Command{
		Use:     "alpha",
		Short:   "Commands for features in alpha",
		Long:    "Previous names of commands: `clusterctl rollout` and `clusterctl plan` do the same.",
		Example: "  # Replace the Machines of a MachineDeployment\n  clusterctl alpha rollout restart machinedeployment/my-md-0",

		Annotations: map[string]string{reference.Elsewhere: ""},
	}, newAlphaRollout(f), verb(&cobra.Command{
		Use:     "topology SUBCOMMAND",
		Short:   "Commands for clusters that use managed topologies",
		Long:    "Show the effects of changes on Clusters that have a ClusterClass.",
		Example: "  # Show what a changed ClusterClass changes\n  clusterctl alpha topology plan -f modified-class.yaml -o plan",
	}, plan.NewTopologyPlan(f, nil)))
}

// newRollout returns the command `clusterctl rollout`.
func newRollout(f *factory.Factory) *cobra.Command {
	cmd := machineRollout(f)
	cmd.Short = "Manage rollouts of Machines, and of changes over many Clusters"
	cmd.Long = `Restart, pause, resume and undo the rollouts of MachineDeployments and KubeadmControlPlanes.

Plan, follow, approve, pause, abort and retry ClusterRollouts, which change many Clusters in stages.`
	cmd.Example += `

  # Show what a ClusterRollout would do, and follow it
  clusterctl rollout plan -f rollout.yaml
  clusterctl rollout status my-rollout --watch`
	cmd.AddCommand(rollout.NewPlan(f, nil), rollout.NewStatus(f, nil), rollout.NewApprove(f, nil), rollout.NewAbort(f, nil),
		rollout.NewRetry(f, nil))
	return cmd
}

// newAlphaRollout returns the command `clusterctl alpha rollout`, which is in its examples.
func newAlphaRollout(f *factory.Factory) *cobra.Command {
	cmd := machineRollout(f)
	for _, c := range append(cmd.Commands(), cmd) {
		c.Example = strings.ReplaceAll(c.Example, "clusterctl rollout", "clusterctl alpha rollout")
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 && args[0] == "status" {
			return fmt.Errorf("unknown command \"status\" for %q: `clusterctl wait cluster NAME` waits until all rollouts of a cluster are "+
				"complete, and `clusterctl explain NAME` shows what they wait for", cmd.CommandPath())
		}
		return unknown(cmd, args)
	}
	return cmd
}

// machineRollout returns what both commands have in common.
func machineRollout(f *factory.Factory) *cobra.Command {
	return verb(&cobra.Command{
		Use:     "rollout SUBCOMMAND",
		Short:   "Manage the rollout of a cluster-api resource",
		Long:    "Restart, pause, resume and undo the rollouts of MachineDeployments and KubeadmControlPlanes.",
		Example: "  # Roll a MachineDeployment back to the previous revision\n  clusterctl rollout undo machinedeployment/my-md-0",
	}, rollout.NewRestart(f, nil), rollout.NewPause(f, nil), rollout.NewResume(f, nil), rollout.NewUndo(f, nil))
}

func newCheck(f *factory.Factory) *cobra.Command {
	return verb(&cobra.Command{
		Use:     "check",
		Short:   "Check releases of providers",
		Long:    "Check releases of providers against the contract, before they are published.",
		Example: "  # Check a release in a local repository\n  clusterctl check provider ~/local-repository/infrastructure-aws/v2.4.0",
	}, check.NewProvider(f, nil))
}

func newClass(f *factory.Factory) *cobra.Command {
	return verb(&cobra.Command{
		Use:   "class",
		Short: "Manage revisions of ClusterClasses",
		Long: `Manage revisions of ClusterClasses: immutable copies, to which Clusters can be changed one by one or in waves.

Editing a ClusterClass changes all its Clusters at once. Publishing it changes none.`,
		Example: "  # Turn an edited class into a revision\n  clusterctl class publish -f class.yaml",
	}, class.NewPublish(f, nil), class.NewList(f, nil), class.NewPrune(f, nil))
}

func newConfig(f *factory.Factory) *cobra.Command {
	return verb(&cobra.Command{
		Use:     "config",
		Short:   "Display clusterctl configuration",
		Long:    "Display the effective configuration: the configuration file, the environment and the defaults combined.",
		Example: "  # List the available providers and their repositories\n  clusterctl config repositories",
	}, newRepositories(f))
}

func newCreate(f *factory.Factory) *cobra.Command {
	return verb(&cobra.Command{
		Use:     "create",
		Short:   "Create workload clusters",
		Long:    "Create workload clusters in a management cluster.",
		Example: "  # Create a workload cluster and wait until it is ready\n  clusterctl create cluster my-cluster --kubernetes-version v1.36.3",
	}, create.NewCluster(f, nil))
}

func newDelete(f *factory.Factory) *cobra.Command {
	cmd := deletecommand.New(f, nil)
	cmd.Args = unknown
	cmd.AddCommand(deletecommand.NewCluster(f, nil))
	return cmd
}

func newDescribe(f *factory.Factory) *cobra.Command {
	return verb(&cobra.Command{
		Use:     "describe",
		Short:   "Describe workload clusters",
		Long:    "Describe the status of workload clusters.",
		Example: "  # Show the state of a workload cluster\n  clusterctl describe cluster my-cluster",
	}, describe.NewCluster(f, nil))
}

// newDocs returns the command `clusterctl docs`, whose book has a page with all commands.
func newDocs(f *factory.Factory) *cobra.Command {
	return docs.New("clusterctl docs", f.Version, func(root *cobra.Command) ([]manual.Generated, error) {
		return []manual.Generated{reference.Commands(root)}, nil
	}, nil)
}

func newGenerate(f *factory.Factory) *cobra.Command {
	return verb(&cobra.Command{
		Use:     "generate",
		Short:   "Generate yaml using clusterctl yaml processor",
		Long:    "Generate YAML from templates by replacing their variables.",
		Example: "  # Generate the YAML of a workload cluster\n  clusterctl generate cluster my-cluster --kubernetes-version v1.36.3",
	}, generate.NewCluster(f, nil), generate.NewProvider(f, nil), generate.NewYAML(f, nil))
}

func newGet(f *factory.Factory) *cobra.Command {
	return verb(&cobra.Command{
		Use:     "get",
		Short:   "Get info from a management or a workload cluster",
		Long:    "Get information from a management or a workload cluster.",
		Example: "  # Get the kubeconfig of a workload cluster\n  clusterctl get kubeconfig my-cluster",
	}, get.NewClusters(f, nil), get.NewBackups(f, nil), get.NewKubeconfig(f, nil))
}

func newOperator(f *factory.Factory) *cobra.Command {
	return verb(&cobra.Command{
		Use:   "operator",
		Short: "Manage providers that are declared by objects",
		Long: `Install the operator, and manage the objects that declare the providers of a management cluster.

With a link to clusterctl that is named kubectl-operator, ` + "`kubectl operator`" + ` does the same.`,
		Example: "  # Install the operator, and declare providers\n  clusterctl operator init --infrastructure aws",
	}, operator.NewInit(f, nil), newOperatorUpgrade(f), operator.NewDelete(f, nil), move.NewCmd(f, nil), operator.NewPreload(f, nil),
		operator.NewPublish(f, nil), newVersion(f))
}

func newOperatorUpgrade(f *factory.Factory) *cobra.Command {
	return verb(&cobra.Command{
		Use:   "upgrade",
		Short: "Upgrade declared providers",
		Long:  "Upgrade declared providers: show which versions there are, and change the objects.",
		Example: "  # Show the versions that the providers can be upgraded to\n  clusterctl operator upgrade plan\n\n" +
			"  # Upgrade the operator and all providers\n  clusterctl operator upgrade apply --contract v1beta1",
	}, upgrade.NewPlan(f, nil), operator.NewUpgradeApply(f, nil))
}

func newUpgrade(f *factory.Factory) *cobra.Command {
	return verb(&cobra.Command{
		Use:   "upgrade",
		Short: "Upgrade core and provider components in a management cluster",
		Long:  "Upgrade the providers of a management cluster: show which versions there are, and install them.",
		Example: "  # Show the versions that the providers can be upgraded to\n  clusterctl upgrade plan\n\n" +
			"  # Upgrade all providers\n  clusterctl upgrade apply --contract v1beta1",
	}, upgrade.NewPlan(f, nil), upgrade.NewApply(f, nil), upgrade.NewOperator(f, nil), upgrade.NewStorage(f, nil))
}

func newWait(f *factory.Factory) *cobra.Command {
	return verb(&cobra.Command{
		Use:     "wait",
		Short:   "Wait until workload clusters are ready",
		Long:    "Wait until changes of workload clusters are rolled out.",
		Example: "  # Wait until a change of a workload cluster is rolled out\n  clusterctl wait cluster my-cluster",
	}, wait.NewCluster(f, nil))
}

func newTakeover(f *factory.Factory) *cobra.Command {
	return verb(&cobra.Command{
		Use:   "takeover SUBCOMMAND",
		Short: "Switch a management cluster between this and other versions of Cluster API",
		Long:  "Switch a management cluster between this and other versions of Cluster API without replacing a Machine.",
		Example: "  # Show what this version would write\n  clusterctl takeover check\n\n" +
			"  # Show what has to be removed before v1.7.9 takes over\n  clusterctl takeover handback --to v1.7.9 --dry-run",
	}, takeover.NewCheck(f, nil), takeover.NewHandback(f, nil), takeover.NewRecord(f, nil))
}
