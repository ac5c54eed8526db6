/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The limit of IP over InfiniBand: a relay by hand. Two network namespaces with a TUN device
 * each, and one loop that reads a packet, with its virtio-net header, from one device and
 * writes it to the other. Segments of 64 KiB pass whole, and no checksum is computed.
 *
 *	bench-relay MTU
 *
 * prints the process ids of two processes that hold the namespaces (nsenter(1)) and relays
 * until its standard input ends. The addresses are 10.200.0.1 and 10.200.0.2.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEVICE	  "relay0"
#define NETWORK	  0x0ac80000u /* 10.200.0.0 */
#define OFFLOADS  (TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN)
#define MOST	  (1 << 17) /* bytes of a packet with its header */
#define BUDGET	  64	    /* packets before the other side has its turn */

static void check(int result, const char *what)
{
	if (result >= 0)
		return;
	fprintf(stderr, "bench-relay: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static void set_address(int fd, unsigned long request, uint32_t address)
{
	struct ifreq req = {.ifr_name = DEVICE};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};

	memcpy(&req.ifr_addr, &in, sizeof(in));
	check(ioctl(fd, request, &req), "address");
}

static int open_tun(uint32_t address, int mtu)
{
	struct ifreq req = {.ifr_name = DEVICE, .ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
	int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK), fd = socket(AF_INET, SOCK_DGRAM, 0);

	check(tun, "/dev/net/tun");
	check(fd, "socket");
	check(ioctl(tun, TUNSETIFF, &req), "TUNSETIFF");
	check(ioctl(tun, TUNSETOFFLOAD, OFFLOADS), "TUNSETOFFLOAD");
	set_address(fd, SIOCSIFADDR, address);
	set_address(fd, SIOCSIFNETMASK, 0xffff0000u);
	req.ifr_mtu = mtu;
	check(ioctl(fd, SIOCSIFMTU, &req), "SIOCSIFMTU");
	req.ifr_flags = IFF_UP | IFF_RUNNING;
	check(ioctl(fd, SIOCSIFFLAGS, &req), "SIOCSIFFLAGS");
	close(fd);
	return tun;
}

/* The child that opens a device in its namespace shares its descriptors with the relay. */
struct side {
	uint32_t address;
	int mtu, tun;
};

static int hold(void *arg)
{
	struct side *side = arg;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	check(unshare(CLONE_NEWNET), "unshare");
	side->tun = open_tun(side->address, side->mtu);
	while (pause() < 0)
		;
	return 0;
}

static pid_t start(struct side *side)
{
	char *stack = malloc(65536);
	pid_t pid = clone(hold, stack + 65536, CLONE_VM | CLONE_FILES | SIGCHLD, side);

	check(pid, "clone");
	while (!__atomic_load_n(&side->tun, __ATOMIC_ACQUIRE))
		usleep(1000);
	return pid;
}

static void relay(int from, int to)
{
	static char packet[MOST];

	for (int i = 0; i < BUDGET; i++) {
		ssize_t n = read(from, packet, sizeof(packet));

		if (n <= 0 || (write(to, packet, (size_t)n) < 0 && errno == EIO))
			return;
	}
}

int main(int argc, char **argv)
{
	int mtu = argc == 2 ? atoi(argv[1]) : 0;
	struct side side[2] = {{NETWORK | 1, mtu, 0}, {NETWORK | 2, mtu, 0}};
	struct pollfd fd[3] = {{.fd = STDIN_FILENO, .events = POLLIN}};
	pid_t pid[2];

	if (mtu < 576) {
		fprintf(stderr, "usage: bench-relay MTU\n");
		return EXIT_FAILURE;
	}
	if (getuid())
		check(unshare(CLONE_NEWUSER), "a user namespace");
	for (int i = 0; i < 2; i++)
		pid[i] = start(&side[i]);
	printf("%d %d\n", pid[0], pid[1]);
	fflush(stdout);
	for (int i = 0; i < 2; i++)
		fd[i + 1] = (struct pollfd){.fd = side[i].tun, .events = POLLIN};
	while (!fd[0].revents && poll(fd, 3, -1) > 0) {
		relay(side[0].tun, side[1].tun);
		relay(side[1].tun, side[0].tun);
	}
	for (int i = 0; i < 2; i++)
		kill(pid[i], SIGKILL);
	return EXIT_SUCCESS;
}
