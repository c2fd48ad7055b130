"""Stories on several machines, played by network namespaces: they need root, iproute2 and a C compiler."""
