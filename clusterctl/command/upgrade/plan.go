package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/operator"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/certmanager"
	"sigs.k8s.io/cluster-api/packages/choose"
	"sigs.k8s.io/cluster-api/packages/inventory"
)

// PlanOptions are the inputs of the command.
type PlanOptions struct {
	IO         *iostreams.Streams
	Catalog    func(context.Context) (*catalog.Catalog, error)
	Connect    func(management.Kubeconfig) (*management.Cluster, error)
	Kubeconfig management.Kubeconfig
	// ExitCode makes an upgrade that is possible an error with the code ExitChanges.
	ExitCode bool
}

// findings are what upgrades would change.
type findings struct {
	plans []choose.ContractPlan
	// certManager and operator are whether these are due.
	certManager, operator bool
}

// NewPlan returns the command. runF, if not nil, is run instead.
func NewPlan(f *factory.Factory, runF func(context.Context, *PlanOptions) error) *cobra.Command {
	opts := &PlanOptions{IO: f.IO, Catalog: f.Catalog, Connect: f.Connect}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Provide a list of recommended target versions for upgrading Cluster API providers in a management cluster",
		Long: `List, for each contract, the latest versions that the providers of a management cluster can be upgraded to.

Pre-releases are not proposed. Nothing is changed.

With --exit-code, the exit code is 2 if the proposed command would change anything: a provider, the operator, or cert-manager. It is 1 if
the repository of a provider cannot be read, because that command fails, too.`,
		Example: `  # Show the versions that the providers can be upgraded to
  clusterctl upgrade plan

  # Find out in a script whether there is anything to upgrade
  clusterctl upgrade plan --exit-code || [ $? = 2 ]`,
		Args: clusterflags.NoArgs(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runPlan(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	cmd.Flags().BoolVar(&opts.ExitCode, "exit-code", false, "Exit with 2 if there is anything to upgrade")
	return cmd
}

func runPlan(ctx context.Context, opts *PlanOptions) error {
	all, err := opts.Catalog(ctx)
	if err != nil {
		return err
	}
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return err
	}
	if err := m.CheckContract(ctx); err != nil {
		return err
	}
	opts.IO.Infof("Checking cert-manager version...")
	manager, err := certmanager.CheckUpgrade(ctx, m.Client, all.Store, all.Config)
	if err != nil {
		return err
	}
	printCertManager(opts.IO.Out, manager)
	opts.IO.Infof("Checking new release availability...")
	installed, err := inventory.Read(ctx, m.Client)
	if err != nil {
		return err
	}
	releases, err := choose.ReadReleases(ctx, all, installed)
	if err != nil {
		return err
	}
	found := findings{certManager: manager.Due()}
	if found.plans, err = choose.ContractPlans(installed, releases); err != nil {
		return err
	}
	declared, err := inventory.ReadDeclared(ctx, m.Client)
	if err != nil {
		return err
	}
	if found.operator, err = printOperator(ctx, opts, m, all); err != nil {
		return err
	}
	for _, p := range found.plans[:min(1, len(found.plans))] {
		for _, warning := range p.Skipped() {
			opts.IO.Warnf("%s", warning)
		}
	}
	for i, p := range found.plans {
		if slices.ContainsFunc(found.plans[:i], p.SameVersions) {
			continue
		}
		if err := printPlan(opts.IO, p, len(declared) > 0, found.certManager); err != nil {
			return err
		}
	}
	if opts.ExitCode {
		return found.exitCode()
	}
	return nil
}

// exitCode returns an error if apply would fail, and one with ExitChanges if it would change anything.
func (f findings) exitCode() error {
	providers := false
	for _, p := range f.plans {
		if !slices.Contains(packages.Contracts(), p.Contract) {
			continue
		}
		if problems := p.Problems(); len(problems) > 0 {
			return errors.Join(problems...)
		}
		providers = providers || !p.UpToDate()
	}
	if providers || f.certManager || f.operator {
		return factory.WithExitCode(errors.New("not everything is up to date"), factory.ExitChanges)
	}
	return nil
}

// printOperator prints whether the operator can be upgraded, if there is one, and returns it.
func printOperator(ctx context.Context, opts *PlanOptions, m *management.Cluster, all *catalog.Catalog) (due bool, err error) {
	have, err := operator.Find(ctx, m.Client)
	if err != nil || have == nil {
		return false, err
	}
	next, err := operator.Next(ctx, all, have, "")
	switch {
	case err != nil:
		fmt.Fprintf(opts.IO.Out, "The operator %s cannot be checked: %v\n", have.Version, err)
	case next == nil:
		fmt.Fprintf(opts.IO.Out, "The operator %s is already up to date\n", have.Version)
	default:
		fmt.Fprintf(opts.IO.Out, "The operator can be upgraded from %s to %s:\n\n   %s\n", have.Version, next.Version,
			opts.IO.Command("clusterctl upgrade operator"))
	}
	return next != nil, nil
}

// printCertManager prints what happens to a cert-manager that clusterctl manages.
func printCertManager(w io.Writer, u *certmanager.Upgrade) {
	switch {
	case u.Installed == "":
	case len(u.Images) > 0:
		fmt.Fprintf(w, "Cert-Manager %q will get other images: %s\n", u.Installed, strings.Join(u.Images, ", "))
	case u.Due():
		fmt.Fprintf(w, "Cert-Manager will be upgraded from %q to %q\n", u.Installed, u.Wanted)
	case u.Unchecked != nil:
		fmt.Fprintf(w, "Cert-Manager is already up to date, but its images could not be compared: %v\n", u.Unchecked)
	default:
		fmt.Fprintln(w, "Cert-Manager is already up to date")
	}
}

// printPlan prints a plan. With declared, the command that changes the objects of the operator is proposed; certManager is whether
// cert-manager is due, which apply upgrades, too.
func printPlan(streams *iostreams.Streams, p choose.ContractPlan, declared, certManager bool) error {
	out := streams.Out
	fmt.Fprintf(out, "\nManagement group: %s/%s, latest release available for the %s API Version of Cluster API (contract):\n\n",
		p.Core.Namespace, p.Core.Name, p.Contract)
	w := tabwriter.NewWriter(out, 10, 4, 3, ' ', 0)
	fmt.Fprintln(w, "NAME\tNAMESPACE\tTYPE\tCURRENT VERSION\tNEXT VERSION")
	for _, item := range p.Items {
		next := item.Next
		switch {
		case item.Problem != nil:
			next = "Unknown: " + strings.Join(strings.Fields(item.Problem.Error()), " ")
		case next == "":
			next = "Already up to date"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", item.Installed.Name, item.Installed.Namespace, item.Installed.Type, item.Installed.Version, next)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s\n", conclusion(streams, p, declared, certManager))
	return nil
}

// conclusion returns what a plan amounts to, and the commands to run.
func conclusion(streams *iostreams.Streams, p choose.ContractPlan, declared, certManager bool) string {
	const next = "You can now apply the upgrade by executing the following command"
	newer := slices.ContainsFunc(p.Items, func(i choose.ContractItem) bool { return i.Next != "" })
	unknown := len(p.Problems()) > 0
	apply := "\n\n   " + streams.Command("clusterctl upgrade apply --contract %s", p.Contract)
	applyDeclared := "\n\n   " + streams.Command("clusterctl operator upgrade apply --contract %s", p.Contract)
	switch {
	case newer && !slices.Contains(packages.Contracts(), p.Contract):
		return fmt.Sprintf("The current version of clusterctl could not upgrade to %s contract (only %s supported).",
			p.Contract, packages.JoinContracts(packages.Contracts()))
	case newer && declared && certManager:
		return next + "s, the second one for cert-manager:" + applyDeclared + strings.TrimPrefix(apply, "\n")
	case newer && declared:
		return next + ":" + applyDeclared
	case newer:
		return next + ":" + apply
	case unknown && certManager:
		return "No newer versions of providers are known, but not all could be checked. cert-manager is not up to date. " + next + ":" + apply
	case unknown:
		return "No newer versions are known, but not all providers could be checked."
	case certManager:
		return "The providers are up to date, cert-manager is not. " + next + ":" + apply
	default:
		return "You are already up to date!"
	}
}
