-- The workload oltp for sysbench: each request is a number of selects of random rows, and says on the console when it begins and ends
-- (guests/init), so that requests are counted and timed outside of the guest.
jit.off()
sysbench.cmdline.options = {
    rows = { "Rows of the table", 100000 },
    selects = { "Selects of a request", 20 },
}

function thread_init()
    connection = sysbench.sql.driver():connect()
    statement = connection:prepare("SELECT c FROM sbtest1 WHERE id=?")
    row = statement:bind_create(sysbench.sql.type.INT)
    statement:bind_param(row)
    requests = 0
end

function event()
    requests = requests + 1
    local number = sysbench.tid * 100000 + requests
    io.write("partita-guest begin workload=oltp number=" .. number .. "\n")
    for _ = 1, sysbench.opt.selects do
        row:set(sysbench.rand.uniform(1, sysbench.opt.rows))
        statement:execute()
    end
    io.write("partita-guest job workload=oltp number=" .. number .. " ok=yes\n")
end

function thread_done()
    statement:close()
    connection:disconnect()
end
