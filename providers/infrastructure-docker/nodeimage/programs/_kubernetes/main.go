// Command kubernetes is every program of Kubernetes that a node needs, in one executable, and a small crictl. The name under which it is called
// selects the program. Together they have a third of the size of separate programs, and link in a fifth of the time.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // for the time zones of CronJobs

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	proxyconfig "k8s.io/kube-proxy/config/v1alpha1"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlerrors "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
	kubeadmerrors "k8s.io/kubernetes/cmd/kubeadm/app/util/errors"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
	proxyscheme "k8s.io/kubernetes/pkg/proxy/apis/config/scheme"
	proxydefaults "k8s.io/kubernetes/pkg/proxy/apis/config/v1alpha1"
)

func main() {
	commands := map[string]func() *cobra.Command{
		"crictl":                  crictl,
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kube-proxy":              kubeProxy,
		"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	}
	switch name := filepath.Base(os.Args[0]); name {
	case "kubeadm":
		kubeadmerrors.HandleError(kubeadm.Run())
	case "kubectl":
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlerrors.CheckErr(err)
		}
	default:
		command, ok := commands[name]
		if !ok {
			fmt.Fprintf(os.Stderr, "kubernetes: %q is not a program of Kubernetes; call this executable by the name of one\n", name)
			os.Exit(2)
		}
		os.Exit(cli.Run(command()))
	}
}

// kubeProxy returns kube-proxy with other defaults: it does not set the size of the connection tracking table. Nodes in
// containers share the table of the machine, may not change its size, and kube-proxy would exit.
func kubeProxy() *cobra.Command {
	proxyscheme.Scheme.AddTypeDefaultingFunc(&proxyconfig.KubeProxyConfiguration{}, func(object any) {
		c := object.(*proxyconfig.KubeProxyConfiguration)
		if c.Conntrack.MaxPerCore == nil {
			c.Conntrack.MaxPerCore = new(int32)
		}
		proxydefaults.SetObjectDefaults_KubeProxyConfiguration(c)
	})
	return proxy.NewProxyCommand()
}
