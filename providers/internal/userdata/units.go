package userdata

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	unitFolder = "/etc/systemd/system/"
	// kubeadmUnit runs kubeadm at the first boot.
	kubeadmUnit = "kubeadm.service"
	// containerd runs before the data is applied, other than on machines that Ignition configures before they boot.
	containerd       = "containerd.service"
	containerdFolder = "/etc/containerd/"
)

// units writes units, enables them, and ends with the command of kubeadm.
func (d *Data) units(c *ignitionConfig) error {
	var enable []Command
	var kubeadm *Command
	changed := d.configured()
	for _, u := range c.Systemd.Units {
		if !unitForm().MatchString(u.Name) {
			return fmt.Errorf("unit %.80q in the Ignition document has an invalid name", u.Name)
		}
		enabled := u.Enable
		if u.Enabled != nil {
			enabled = *u.Enabled
		}
		if u.Name == kubeadmUnit && enabled && !u.Mask {
			args, err := u.program()
			if err != nil {
				return err
			}
			kubeadm = &Command{Name: kubeadmUnit, Args: args}
			if len(u.Dropins) > 0 {
				d.Ignored = append(d.Ignored, "drop-ins of "+kubeadmUnit)
			}
			continue
		}
		if err := d.unitFiles(u); err != nil {
			return err
		}
		if u.Contents != "" || len(u.Dropins) > 0 {
			changed = append(changed, u.Name)
		}
		enable = append(enable, u.commands(enabled)...)
	}
	d.systemctl(changed, enable)
	if kubeadm != nil {
		d.Commands = append(d.Commands, *kubeadm)
	}
	return nil
}

// configured returns the units that files configure: their own, their drop-ins, and containerd's configuration.
func (d *Data) configured() []string {
	var names []string
	for _, f := range d.Files {
		name, inFolder := strings.CutPrefix(f.Path, unitFolder)
		switch {
		case inFolder:
			name, _, _ = strings.Cut(name, "/")
			if name = strings.TrimSuffix(name, ".d"); unitForm().MatchString(name) {
				names = append(names, name)
			}
		case strings.HasPrefix(f.Path, containerdFolder):
			names = append(names, containerd)
		}
	}
	return names
}

// systemctl makes systemd use changed units, and then runs the commands. Units that already run, such as containerd, are
// restarted: on a real machine, Ignition writes them before the first boot.
func (d *Data) systemctl(changed []string, enable []Command) {
	if len(changed)+len(enable) == 0 {
		return
	}
	d.Commands = append(d.Commands, Command{Name: "systemctl daemon-reload", Args: []string{"systemctl", "daemon-reload"}})
	slices.Sort(changed)
	for _, name := range slices.Compact(changed) {
		d.Commands = append(d.Commands, Command{
			Name:  "systemctl restart " + name,
			Shell: fmt.Sprintf("if systemctl is-active --quiet -- %[1]s; then systemctl restart -- %[1]s; fi", Quote(name)),
		})
	}
	d.Commands = append(d.Commands, enable...)
}

// unitForm matches names of systemd units, and of their drop-ins.
func unitForm() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9:_\\@-][A-Za-z0-9:_.\\@-]{0,250}$`)
}

func (d *Data) unitFiles(u ignitionUnit) error {
	if u.Contents != "" {
		d.Files = append(d.Files, File{Path: unitFolder + u.Name, Mode: defaultMode, Content: []byte(u.Contents)})
	}
	for _, in := range u.Dropins {
		if !unitForm().MatchString(in.Name) {
			return fmt.Errorf("drop-in %.80q of unit %s in the Ignition document has an invalid name", in.Name, u.Name)
		}
		d.Files = append(d.Files, File{Path: unitFolder + u.Name + ".d/" + in.Name, Mode: defaultMode, Content: []byte(in.Contents)})
	}
	return nil
}

// commands returns what enables and starts, or masks, the unit.
func (u *ignitionUnit) commands(enabled bool) []Command {
	command := func(args ...string) Command {
		args = append(args, "--", u.Name)
		return Command{Name: "systemctl " + args[0] + " " + u.Name, Args: append([]string{"systemctl"}, args...)}
	}
	switch {
	case u.Mask:
		return []Command{command("mask")}
	case !enabled:
		return nil
	case u.Contents == "":
		// The unit of a program that the image may not have, such as ntpd. Ignition does not look for it either.
		return []Command{{Name: "systemctl enable " + u.Name, Shell: fmt.Sprintf("if systemctl cat -- %[1]s >/dev/null 2>&1; then "+
			"systemctl enable -- %[1]s && systemctl start --no-block -- %[1]s; else echo 'no such unit'; fi", Quote(u.Name))}}
	case u.blocksKubeadm():
		return []Command{command("enable"), command("start")}
	}
	return []Command{command("enable"), command("start", "--no-block")}
}

// blocksKubeadm reports whether kubeadm must not run before the unit is active: a mount that its unit requires. Devices are
// excepted: a container does not have them, and systemd would wait for them for minutes.
func (u *ignitionUnit) blocksKubeadm() bool {
	return path.Ext(u.Name) == ".mount" && regexp.MustCompile(`(?m)^RequiredBy=.*\b`+regexp.QuoteMeta(kubeadmUnit)).MatchString(u.Contents) &&
		!regexp.MustCompile(`(?m)^What=/dev/`).MatchString(u.Contents)
}

// program returns the command of ExecStart.
func (u *ignitionUnit) program() ([]string, error) {
	for line := range strings.Lines(u.Contents) {
		value, ok := strings.CutPrefix(strings.TrimSpace(line), "ExecStart=")
		if ok && value != "" {
			args := strings.Fields(strings.TrimLeft(value, "@-:+!"))
			if len(args) > 0 && path.IsAbs(args[0]) && !strings.ContainsAny(value, `"'\%$`) {
				return args, nil
			}
		}
	}
	return nil, fmt.Errorf("unit %s in the Ignition document has no ExecStart with an absolute path and plain arguments", u.Name)
}
