#include "runs/client.h"

int main(int argc, char *argv[])
{
    return epg_client_main(argc, argv, stdout, stderr);
}
